// Command informer is client-go's SharedInformer for pods, in JSON, which prints what it observes: a line
// of JSON on standard output for
//
//   - each request that it makes: {"type":"GET","url":"/api/v1/pods?..."};
//   - each notification of its handler: {"type":"ADDED|MODIFIED|DELETED","key":"ns/name","rv":"7"},
//     with "before" (the previous version in the notification), "initial" and "unknown" (a deletion
//     that was missed) where they apply;
//   - its store, after a moment without notifications, if it has changed:
//     {"type":"STORE","store":{"ns/name":"7"}}.
//
// It runs until it is killed. KUBE_FEATURE_WatchListClient selects whether it lists or takes the state as
// a stream.
//
//	informer -server URL
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const moment = 100 * time.Millisecond

type line struct {
	Type    string            `json:"type"`
	URL     string            `json:"url,omitempty"`
	Key     string            `json:"key,omitempty"`
	RV      string            `json:"rv,omitempty"`
	Before  string            `json:"before,omitempty"`
	Initial bool              `json:"initial,omitempty"`
	Unknown bool              `json:"unknown,omitempty"`
	Store   map[string]string `json:"store,omitempty"`
}

var printing sync.Mutex

func say(what line) {
	text, err := json.Marshal(what)
	if err != nil {
		panic(err)
	}
	printing.Lock()
	defer printing.Unlock()
	fmt.Println(string(text))
}

// said counts notifications.
var said atomic.Int64

func tell(kind string, pod *corev1.Pod, before string, initial, unknown bool) {
	say(line{Type: kind, Key: pod.Namespace + "/" + pod.Name, RV: pod.ResourceVersion, Before: before,
		Initial: initial, Unknown: unknown})
	said.Add(1)
}

type requests struct{ next http.RoundTripper }

func (r requests) RoundTrip(request *http.Request) (*http.Response, error) {
	say(line{Type: request.Method, URL: request.URL.RequestURI()})
	return r.next.RoundTrip(request)
}

func main() {
	server := flag.String("server", "http://127.0.0.1:8001", "the API server")
	flag.Parse()
	if err := run(context.Background(), *server); err != nil {
		fmt.Fprintln(os.Stderr, "informer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, server string) error {
	config := &rest.Config{Host: server, QPS: -1}
	config.ContentType = "application/json"
	config.AcceptContentTypes = "application/json"
	config.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return requests{next} }
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	_, err = pods.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj interface{}, initial bool) {
			tell("ADDED", obj.(*corev1.Pod), "", initial, false)
		},
		UpdateFunc: func(before, obj interface{}) {
			tell("MODIFIED", obj.(*corev1.Pod), before.(*corev1.Pod).ResourceVersion, false, false)
		},
		DeleteFunc: func(obj interface{}) {
			if unknown, missed := obj.(cache.DeletedFinalStateUnknown); missed {
				tell("DELETED", unknown.Obj.(*corev1.Pod), "", false, true)
				return
			}
			tell("DELETED", obj.(*corev1.Pod), "", false, false)
		},
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	watchStore(pods.GetStore())
	return nil
}

// watchStore prints the store when it is stable.
func watchStore(store cache.Store) {
	var shown map[string]string
	for before := int64(-1); ; time.Sleep(moment) {
		if now := said.Load(); now != before {
			before = now
			continue
		}
		present := map[string]string{}
		for _, obj := range store.List() {
			pod := obj.(*corev1.Pod)
			present[pod.Namespace+"/"+pod.Name] = pod.ResourceVersion
		}
		if shown == nil || !reflect.DeepEqual(present, shown) {
			say(line{Type: "STORE", Store: present})
			shown = present
		}
	}
}
