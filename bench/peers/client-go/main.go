// The jobs of `lookout bench`, with client-go: the same flags, and the same JSON on standard output.
//
//	client-go-peer sync      --server URL [--encoding json|protobuf] [--mode list|watchlist] [--keep all|unmanaged]
//	client-go-peer events    --server URL --events N ...
//	client-go-peer informers --server URL --informers N ...
//	client-go-peer controller --server URL [--objects N] [--bytes N] [--rate N] [--for TIME]
//	client-go-peer store     FILE: the operations of bench/store_compare on the objects of that file
//	client-go-peer encode    JSON objects, one a line -> protobuf, each preceded by its length (4 bytes, big endian)
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// The annotation with the time at which the server sent an object, in microseconds since 1970.
const sentAnnotation = "lookout.dev/sent"

var (
	server     = flag.String("server", "", "URL of the server")
	kubeconfig = flag.String("kubeconfig", "", "instead of --server")
	ca         = flag.String("ca", "", "certificate of the server's authority")
	encoding   = flag.String("encoding", "json", "json or protobuf")
	mode       = flag.String("mode", "watchlist", "list or watchlist")
	keep       = flag.String("keep", "all", "all, unmanaged (without metadata.managedFields) or registry")
	events     = flag.Int("events", 0, "events: how many will come")
	count      = flag.Int("informers", 1000, "informers: how many, each of a namespace of its own")

	objectCount = flag.Int("objects", 10000, "controller: how many objects")
	objectBytes = flag.Int("bytes", 1000, "controller: the size of each")
	changeRate  = flag.Int("rate", 200, "controller: changes a second")
	changeTime  = flag.Duration("for", 5*time.Second, "controller: how long objects change")
)

// The version of client-go, set by scripts/client-go.sh.
var version string

type usage struct {
	user, system float64
	wall         time.Time
}

func seconds(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }

func now() usage {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return usage{seconds(u.Utime), seconds(u.Stime), time.Now()}
}

func (u usage) since(before usage) map[string]any {
	return map[string]any{
		"wall_s":       u.wall.Sub(before.wall).Seconds(),
		"cpu_user_s":   u.user - before.user,
		"cpu_system_s": u.system - before.system,
	}
}

// A value of /proc/self/status, in bytes (or a count).
func status(name string) int64 {
	text, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(text), "\n") {
		if rest, found := strings.CutPrefix(line, name+":"); found {
			fields := strings.Fields(rest)
			n, _ := strconv.ParseInt(fields[0], 10, 64)
			if len(fields) > 1 {
				n *= 1024
			}
			return n
		}
	}
	return 0
}

func memory(out map[string]any, before int64) {
	out["rss_anon_before"] = before
	out["rss_anon"] = status("RssAnon")
	out["vm_hwm"] = status("VmHWM")
	out["threads"] = status("Threads")
	debug.FreeOSMemory() // collects garbage, and returns free memory
	out["rss_anon_settled"] = status("RssAnon")
}

func config() *rest.Config {
	var c *rest.Config
	if *kubeconfig != "" {
		var err error
		if c, err = clientcmd.BuildConfigFromFlags("", *kubeconfig); err != nil {
			fail(err)
		}
	} else {
		c = &rest.Config{Host: *server}
		c.TLSClientConfig.CAFile = *ca
	}
	c.QPS = -1 // no rate limit
	if *encoding == "protobuf" {
		c.ContentType = k8sruntime.ContentTypeProtobuf
		c.AcceptContentTypes = k8sruntime.ContentTypeProtobuf + "," + k8sruntime.ContentTypeJSON
	} else {
		c.ContentType = k8sruntime.ContentTypeJSON
		c.AcceptContentTypes = k8sruntime.ContentTypeJSON
	}
	return c
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "client-go-peer:", err)
	os.Exit(1)
}

func client() kubernetes.Interface {
	c, err := kubernetes.NewForConfig(config())
	if err != nil {
		fail(err)
	}
	return c
}

// Like cache.WaitForCacheSync, which polls only every 100 ms.
func wait(synced func() bool) {
	for !synced() {
		time.Sleep(time.Millisecond)
	}
}

// follow starts the factory with a handler; it returns when the handler has received all objects.
func follow(factory informers.SharedInformerFactory, informer cache.SharedIndexInformer,
	handler cache.ResourceEventHandler) context.CancelFunc {
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		fail(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	factory.Start(ctx.Done())
	wait(registration.HasSynced)
	return stop
}

func options() []informers.SharedInformerOption {
	switch *keep {
	case "unmanaged":
		return []informers.SharedInformerOption{informers.WithTransform(func(o any) (any, error) {
			if m, ok := o.(metav1.Object); ok {
				m.SetManagedFields(nil)
			}
			return o, nil
		})}
	case "registry":
		return []informers.SharedInformerOption{informers.WithTransform(func(o any) (any, error) {
			if p, ok := o.(*corev1.Pod); ok {
				return forRegistry(p), nil
			}
			return o, nil
		})}
	}
	return nil
}

// The fields of a pod that a service registry needs, copied so that the rest can be freed.
func forRegistry(p *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{}
	out.Name, out.Namespace, out.UID = strings.Clone(p.Name), strings.Clone(p.Namespace), p.UID
	out.ResourceVersion, out.DeletionTimestamp = p.ResourceVersion, p.DeletionTimestamp
	copyOf := func(from map[string]string) map[string]string {
		to := map[string]string{}
		for key, value := range from {
			if strings.HasPrefix(key, "kratos-service-") {
				to[strings.Clone(key)] = strings.Clone(value)
			}
		}
		return to
	}
	out.Labels, out.Annotations = copyOf(p.Labels), copyOf(p.Annotations)
	for _, container := range p.Spec.Containers {
		out.Spec.Containers = append(out.Spec.Containers, corev1.Container{Ports: container.Ports})
	}
	out.Status.Phase, out.Status.PodIP = p.Status.Phase, strings.Clone(p.Status.PodIP)
	for _, condition := range p.Status.Conditions {
		out.Status.Conditions = append(out.Status.Conditions,
			corev1.PodCondition{Type: condition.Type, Status: condition.Status})
	}
	return out
}

func runSync() map[string]any {
	anon := status("RssAnon")
	begin := now()
	factory := informers.NewSharedInformerFactoryWithOptions(client(), 0, options()...)
	informer := factory.Core().V1().Pods().Informer()
	var added atomic.Int64
	stop := follow(factory, informer, cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { added.Add(1) },
	})
	defer stop()
	out := now().since(begin)
	out["objects"] = len(informer.GetStore().ListKeys())
	memory(out, anon)
	runtime.KeepAlive(informer)
	return out
}

func runEvents() map[string]any {
	factory := informers.NewSharedInformerFactoryWithOptions(client(), 0, options()...)
	informer := factory.Core().V1().Pods().Informer()
	latencies := make([]float64, 0, *events)
	var first int64
	done := make(chan usage, 1)
	handled := 0
	stop := follow(factory, informer, cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, o any) {
			at := time.Now().UnixMicro()
			sent, _ := strconv.ParseInt(o.(*corev1.Pod).Annotations[sentAnnotation], 10, 64)
			if handled == 0 {
				first = sent
			}
			latencies = append(latencies, float64(at-sent))
			if handled++; handled == *events {
				done <- now()
			}
		},
	})
	defer stop()
	runtime.GC() // excludes the garbage of the list from the events
	begin := now()
	end := <-done
	out := end.since(begin)
	out["wall_s"] = float64(end.wall.UnixMicro()-first) / 1e6
	out["events"] = handled
	out["objects"] = len(informer.GetStore().ListKeys())
	out["events_per_s"] = float64(handled) / out["wall_s"].(float64)
	out["cpu_us_per_event"] = (out["cpu_user_s"].(float64) + out["cpu_system_s"].(float64)) * 1e6 / float64(handled)
	slices.Sort(latencies)
	at := func(q float64) float64 {
		return latencies[int(math.Min(q*float64(len(latencies)), float64(len(latencies)-1)))]
	}
	out["latency_p50_us"], out["latency_p99_us"], out["latency_max_us"] = at(0.5), at(0.99), at(1)
	out["vm_hwm"] = status("VmHWM")
	return out
}

func runInformers() map[string]any {
	anon := status("RssAnon")
	begin := now()
	c := client()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var objects atomic.Int64
	var group sync.WaitGroup
	all := make([]cache.SharedIndexInformer, *count)
	for i := range all {
		factory := informers.NewSharedInformerFactoryWithOptions(c, 0,
			append(options(), informers.WithNamespace(fmt.Sprintf("ns-%04d", i)))...)
		all[i] = factory.Core().V1().Pods().Informer()
		factory.Start(ctx.Done())
		group.Add(1)
		go func() {
			defer group.Done()
			wait(all[i].HasSynced)
			objects.Add(int64(len(all[i].GetStore().ListKeys())))
		}()
	}
	group.Wait()
	out := now().since(begin)
	out["informers"] = *count
	out["objects"] = objects.Load()
	out["goroutines"] = runtime.NumGoroutine()
	memory(out, anon)
	return out
}

func encode() {
	serializer := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(line, nil, nil)
		if err != nil {
			fail(err)
		}
		var text strings.Builder
		if err := serializer.Encode(object, &text); err != nil {
			fail(err)
		}
		binary.Write(out, binary.BigEndian, uint32(text.Len()))
		io.WriteString(out, text.String())
	}
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: client-go-peer sync|events|informers|controller|encode [FLAGS] | store FILE")
		os.Exit(2)
	}
	job := os.Args[1]
	if job == "store" && len(os.Args) == 3 {
		runStore(os.Args[2])
		return
	}
	flag.CommandLine.Parse(os.Args[2:])
	// client-go reads it when it creates the first client.
	os.Setenv("KUBE_FEATURE_WatchListClient", strconv.FormatBool(*mode == "watchlist"))
	var out map[string]any
	switch job {
	case "encode":
		encode()
		return
	case "sync":
		out = runSync()
	case "events":
		out = runEvents()
	case "informers":
		out = runInformers()
	case "controller":
		out = runController()
	default:
		fmt.Fprintln(os.Stderr, "client-go-peer: no job", job)
		os.Exit(2)
	}
	out["job"], out["client"], out["encoding"], out["mode"], out["keep"] = job, "client-go", *encoding, *mode, *keep
	out["version"], out["go"] = version, runtime.Version()
	json.NewEncoder(os.Stdout).Encode(out)
}
