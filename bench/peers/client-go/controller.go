// The job of `lookout bench controller`: a controller of config maps like one of
// controller-runtime: a shared informer, a rate limited work queue, and workers that take keys from
// the queue. controller-runtime adds its logger, its metrics and its source interfaces.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const (
	controllerNamespace = "default"
	sentKey             = "sent"
	patchedKey          = "patched"
	controllerRounds    = 10
	controllerWriters   = 8
	controllerPatience  = 5 * time.Minute
)

func objectName(i int) string { return fmt.Sprintf("object-%06d", i) }

// The epoch of nowMicroseconds(), which uses the monotonic clock.
var controllerEpoch = time.Now()

func nowMicroseconds() int64 { return time.Since(controllerEpoch).Microseconds() }

// A reconciler. Its key is queued again if it returns an error.
type reconcileFunc func(c *runningController, key cache.ObjectName) error

type runningController struct {
	client  kubernetes.Interface
	lister  corelisters.ConfigMapLister
	queue   workqueue.TypedRateLimitingInterface[cache.ObjectName]
	stop    context.CancelFunc
	workers sync.WaitGroup
	factory informers.SharedInformerFactory
}

func startController(workers int, reconcile reconcileFunc) *runningController {
	ctx, stop := context.WithCancel(context.Background())
	c := &runningController{client: client(), stop: stop}
	c.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]())
	c.factory = informers.NewSharedInformerFactoryWithOptions(c.client, 0, informers.WithNamespace(controllerNamespace))
	maps := c.factory.Core().V1().ConfigMaps()
	enqueue := func(object any) {
		if name, err := cache.DeletionHandlingObjectToName(object); err == nil {
			c.queue.Add(name)
		}
	}
	maps.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, object any) { enqueue(object) },
		DeleteFunc: enqueue,
	})
	c.lister = maps.Lister()
	c.factory.Start(ctx.Done())
	wait(maps.Informer().HasSynced)
	for range workers {
		c.workers.Add(1)
		go func() {
			defer c.workers.Done()
			for {
				key, shutdown := c.queue.Get()
				if shutdown {
					return
				}
				if err := reconcile(c, key); err != nil {
					c.queue.AddRateLimited(key)
				} else {
					c.queue.Forget(key)
				}
				c.queue.Done(key)
			}
		}()
	}
	return c
}

func (c *runningController) end() {
	c.queue.ShutDown()
	c.workers.Wait()
	c.stop()
	c.factory.Shutdown()
}

func (c *runningController) send(objects int) {
	for i := range objects {
		c.queue.Add(cache.NewObjectName(controllerNamespace, objectName(i)))
	}
}

func waitUntil(what string, condition func() bool) {
	deadline := time.Now().Add(controllerPatience)
	for !condition() {
		if time.Now().After(deadline) {
			fail(errors.New("stopped before " + what))
		}
		time.Sleep(200 * time.Microsecond)
	}
}

func createObjects(objects, size int) {
	maps := client().CoreV1().ConfigMaps(controllerNamespace)
	var next atomic.Int64
	var group sync.WaitGroup
	for range controllerWriters {
		group.Add(1)
		go func() {
			defer group.Done()
			for {
				i := int(next.Add(1)) - 1
				if i >= objects {
					return
				}
				object := &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Name: objectName(i)},
					Data:       map[string]string{"data": string(bytes.Repeat([]byte("x"), size))},
				}
				if _, err := maps.Create(context.Background(), object, metav1.CreateOptions{}); err != nil {
					fail(err)
				}
			}
		}()
	}
	group.Wait()
}

// Measures no-op reconciles of all objects, repeatedly.
func measureNothing(objects int, out map[string]any) {
	before := status("RssAnon")
	var count atomic.Int64
	c := startController(1, func(*runningController, cache.ObjectName) error {
		count.Add(1)
		return nil
	})
	defer c.end()
	wanted := int64(objects)
	waitUntil("all had been reconciled", func() bool { return count.Load() >= wanted })
	out["cache_bytes_per_object"] = (status("RssAnon") - before) / int64(objects)
	begin := now()
	for range controllerRounds {
		c.send(objects)
		wanted += int64(objects)
		waitUntil("all had been reconciled", func() bool { return count.Load() >= wanted })
	}
	reportRate(out, "noop", begin, objects*controllerRounds)
}

// Reports the rate and the processor time of `count` reconciles since `begin`.
func reportRate(out map[string]any, name string, begin usage, count int) {
	end := now()
	out[name+"_per_s"] = float64(count) / end.wall.Sub(begin.wall).Seconds()
	out[name+"_cpu_us"] = (end.user + end.system - begin.user - begin.system) * 1e6 / float64(count)
}

// Measures reconciles that patch their object once.
func measurePatches(objects int, out map[string]any) {
	var enabled atomic.Bool
	var count, patches atomic.Int64
	c := startController(controllerWriters, func(c *runningController, key cache.ObjectName) error {
		count.Add(1)
		object, err := c.lister.ConfigMaps(key.Namespace).Get(key.Name)
		if apierrors.IsNotFound(err) || !enabled.Load() {
			return nil
		}
		if err != nil || object.Data[patchedKey] != "" {
			return err
		}
		patch := []byte(fmt.Sprintf(`{"data":{"%s":"yes"}}`, patchedKey))
		if _, err := c.client.CoreV1().ConfigMaps(key.Namespace).Patch(context.Background(), key.Name,
			types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return err
		}
		patches.Add(1)
		return nil
	})
	defer c.end()
	waitUntil("all had been reconciled", func() bool { return count.Load() >= int64(objects) })
	enabled.Store(true)
	begin := now()
	c.send(objects)
	waitUntil("all had been patched", func() bool { return patches.Load() >= int64(objects) })
	reportRate(out, "patch", begin, objects)
}

// Measures the time from before a change is sent until the reconcile that sees it.
func measureReconcileLatency(objects, rate int, duration time.Duration, out map[string]any) {
	var mutex sync.Mutex
	var lags []int64
	var count atomic.Int64
	seen := make([]int64, objects) // the newest change of each object
	c := startController(2, func(c *runningController, key cache.ObjectName) error {
		current := nowMicroseconds()
		object, err := c.lister.ConfigMaps(key.Namespace).Get(key.Name)
		if err != nil {
			return nil
		}
		sent, _ := strconv.ParseInt(object.Data[sentKey], 10, 64)
		at, err := strconv.Atoi(strings.TrimPrefix(key.Name, "object-"))
		count.Add(1)
		mutex.Lock()
		defer mutex.Unlock()
		if err != nil || at >= len(seen) || seen[at] == sent {
			return nil
		}
		seen[at] = sent
		lags = append(lags, current-sent)
		return nil
	})
	defer c.end()
	waitUntil("all had been reconciled", func() bool { return count.Load() >= int64(objects) })

	maps := c.client.CoreV1().ConfigMaps(controllerNamespace)
	begin := time.Now()
	pause := time.Second / time.Duration(rate)
	sent := 0
	for at := begin; at.Sub(begin) < duration && sent < objects; at = at.Add(pause) {
		time.Sleep(time.Until(at))
		patch := []byte(fmt.Sprintf(`{"data":{"%s":"%d"}}`, sentKey, nowMicroseconds()))
		if _, err := maps.Patch(context.Background(), objectName(sent), types.MergePatchType, patch,
			metav1.PatchOptions{}); err != nil {
			fail(err)
		}
		sent++
	}
	waitUntil("all changes had been reconciled", func() bool {
		mutex.Lock()
		defer mutex.Unlock()
		return len(lags) >= sent
	})
	slices.Sort(lags)
	quantile := func(q float64) float64 {
		return float64(lags[min(len(lags)-1, int(math.Ceil(q*float64(len(lags)))))]) / 1e3
	}
	out["changes"] = sent
	out["latency_p50_ms"], out["latency_p99_ms"], out["latency_max_ms"] = quantile(0.5), quantile(0.99), quantile(1)
}

// Measures one waiting reconcile per object, all at the same time: one worker, so one goroutine,
// for each.
func measureWaiting(objects int, out map[string]any) {
	var enabled atomic.Bool
	var count, waiting atomic.Int64
	end := make(chan struct{})
	before := status("RssAnon")
	c := startController(objects, func(*runningController, cache.ObjectName) error {
		count.Add(1)
		if enabled.Load() {
			waiting.Add(1)
			<-end
		}
		return nil
	})
	defer c.end()
	waitUntil("all had been reconciled", func() bool { return count.Load() >= int64(objects) })
	enabled.Store(true)
	c.send(objects)
	waitUntil("all were waiting", func() bool { return waiting.Load() >= int64(objects) })
	out["waiting"] = waiting.Load()
	out["waiting_threads"] = status("Threads")
	// The workers exist from the start, so the figure includes them and the cache.
	out["waiting_bytes_each_with_cache"] = (status("RssAnon") - before) / int64(objects)
	close(end)
}

func runController() map[string]any {
	createObjects(*objectCount, *objectBytes)
	out := map[string]any{"objects": *objectCount}
	begin := now()
	measureNothing(*objectCount, out)
	runtime.GC()
	measurePatches(*objectCount, out)
	measureReconcileLatency(*objectCount, *changeRate, *changeTime, out)
	measureWaiting(*objectCount, out)
	for name, value := range now().since(begin) {
		out[name] = value
	}
	out["vm_hwm"] = status("VmHWM")
	return out
}
