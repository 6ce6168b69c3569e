package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// The operations of bench/store_compare.cc, on the same objects in the same order.

const (
	gets    = 200_000
	updates = 100_000
)

// Processor time of this thread, to which the goroutine must be locked.
func threadNanoseconds() float64 {
	const threadCPU = 3 // CLOCK_THREAD_CPUTIME_ID
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, threadCPU, uintptr(unsafe.Pointer(&t)), 0)
	return float64(t.Sec)*1e9 + float64(t.Nsec)
}

func each(times int, call func(i int)) float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := threadNanoseconds()
	for i := range times {
		call(i)
	}
	return (threadNanoseconds() - begin) / float64(times)
}

func report(name string, nanoseconds float64) { fmt.Printf("%s %.1f\n", name, nanoseconds) }

type storeObjects struct{ versions [2][]*corev1.Pod }

func readObjects(path string) *storeObjects {
	file, err := os.Open(path)
	if err != nil {
		fail(err)
	}
	defer file.Close()
	out := &storeObjects{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for i := 0; lines.Scan(); i++ {
		pod := &corev1.Pod{}
		if err := json.Unmarshal(lines.Bytes(), pod); err != nil {
			fail(err)
		}
		out.versions[i%2] = append(out.versions[i%2], pod)
	}
	if len(out.versions[0]) == 0 || len(out.versions[0]) != len(out.versions[1]) {
		fail(fmt.Errorf("the file has no objects, or half of one"))
	}
	return out
}

func (o *storeObjects) size() int      { return len(o.versions[0]) }
func (o *storeObjects) some(i int) int { return i * 7919 % o.size() }
func (o *storeObjects) change(i int) *corev1.Pod {
	return o.versions[(i/o.size()+1)%2][o.some(i)]
}

func newStore(o *storeObjects, indexes int) cache.Indexer {
	by := func(value func(*corev1.Pod) string) cache.IndexFunc {
		return func(object any) ([]string, error) { return []string{value(object.(*corev1.Pod))}, nil }
	}
	names := []string{cache.NamespaceIndex, "node", "app", "phase", "ip"}
	functions := []cache.IndexFunc{
		cache.MetaNamespaceIndexFunc,
		by(func(p *corev1.Pod) string { return p.Spec.NodeName }),
		by(func(p *corev1.Pod) string { return p.Labels["app"] }),
		by(func(p *corev1.Pod) string { return string(p.Status.Phase) }),
		by(func(p *corev1.Pod) string { return p.Status.PodIP }),
	}
	indexers := cache.Indexers{}
	for i := range indexes {
		indexers[names[i]] = functions[i]
	}
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers)
	for _, pod := range o.versions[0] {
		store.Add(pod)
	}
	return store
}

var touched atomic.Int64

func touch(object any) { touched.Store(touched.Load() + int64(len(object.(*corev1.Pod).Name))) }

func runStore(path string) {
	o := readObjects(path)
	store := newStore(o, 2)
	keys := make([]string, o.size())
	for i, pod := range o.versions[0] {
		keys[i] = pod.Namespace + "/" + pod.Name
	}
	get := func(first int) float64 {
		sum := 0
		took := each(gets, func(i int) {
			object, _, _ := store.GetByKey(keys[o.some(first+i)])
			sum += len(object.(*corev1.Pod).Spec.NodeName)
		})
		if sum == 0 {
			fail(fmt.Errorf("nothing was found"))
		}
		return took
	}
	runtime.GC()
	report("get", get(0))
	for _, readers := range []int{1, 2, 8} {
		var done atomic.Bool
		var writer, all sync.WaitGroup
		writer.Add(1)
		go func() {
			defer writer.Done()
			for i := 0; !done.Load(); i++ {
				store.Update(o.change(i))
			}
		}()
		took := make([]float64, readers)
		for r := range readers {
			all.Add(1)
			go func() {
				defer all.Done()
				took[r] = get(r * 1000)
			}()
		}
		all.Wait()
		done.Store(true)
		writer.Wait()
		sum := 0.0
		for _, one := range took {
			sum += one
		}
		report(fmt.Sprintf("get_beside_writer_%d", readers), sum/float64(readers))
	}
	report("iterate", each(5, func(int) {
		for _, object := range store.List() {
			touch(object)
		}
	})/float64(o.size()))
	nodes := store.ListIndexFuncValues("node")
	report("by_index", each(2000, func(i int) {
		found, _ := store.ByIndex("node", nodes[i*7919%len(nodes)])
		for _, object := range found {
			touch(object)
		}
	}))
	for _, indexes := range []int{0, 2, 5} {
		store := newStore(o, indexes)
		runtime.GC()
		report(fmt.Sprintf("update_%d", indexes), each(updates, func(i int) { store.Update(o.change(i)) }))
	}
	if touched.Load() == 0 {
		fail(fmt.Errorf("nothing was read"))
	}
}
