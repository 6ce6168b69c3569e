// Command election is a candidate for a Lease with client-go's leader election, which prints what it
// observes, one line each, on standard output:
//
//   - "LEADER IDENTITY" for each observed leader;
//   - "STARTED" when its term starts, and "STOPPED" when its term ends.
//
// SIGTERM ends it after it has released the lease. A lost lease ends it with status 3.
//
//	election -server URL [-ca FILE] [-token TOKEN] -name LEASE -identity NAME -lease 3s -renew 2s -retry 300ms
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func main() {
	config := &rest.Config{QPS: -1}
	flag.StringVar(&config.Host, "server", "http://127.0.0.1:8001", "the API server")
	flag.StringVar(&config.CAFile, "ca", "", "its authority")
	flag.StringVar(&config.BearerToken, "token", "", "a bearer token")
	name := flag.String("name", "shared", "the Lease, in the namespace default")
	identity := flag.String("identity", "go", "the name of this candidate")
	lease := flag.Duration("lease", 3*time.Second, "how long a lease lasts")
	renew := flag.Duration("renew", 2*time.Second, "the renew deadline")
	retry := flag.Duration("retry", 300*time.Millisecond, "the retry period")
	flag.Parse()

	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		fmt.Fprintln(os.Stderr, "election:", err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: *name, Namespace: "default"},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: *identity},
		},
		LeaseDuration:   *lease,
		RenewDeadline:   *renew,
		RetryPeriod:     *retry,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { fmt.Println("STARTED") },
			OnStoppedLeading: func() { fmt.Println("STOPPED") },
			OnNewLeader:      func(who string) { fmt.Println("LEADER", who) },
		},
	})
	if ctx.Err() == nil {
		os.Exit(3)
	}
}
