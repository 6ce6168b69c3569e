package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"sort"
	"strconv"
	"strings"
	"time"

	jsoniter "github.com/json-iterator/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

const (
	idLabel             = "kratos-service-id"
	nameLabel           = "kratos-service-app"
	versionLabel        = "kratos-service-version"
	metadataAnnotation  = "kratos-service-metadata"
	protocolsAnnotation = "kratos-service-protocols"
)

type instance struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Version   string            `json:"version"`
	Metadata  map[string]string `json:"metadata"`
	Endpoints []string          `json:"endpoints"`
}

// kratosPatch uses kratos' encoder and types, because they determine the bytes: a null
// creationTimestamp (in versions of apimachinery that print one), escaped characters of HTML, maps
// in no order.
func kratosPatch(of instance) ([]byte, error) {
	protocols := map[string]string{}
	for _, endpoint := range of.Endpoints {
		parsed, err := url.Parse(endpoint)
		if err != nil {
			return nil, err
		}
		protocols[parsed.Port()] = parsed.Scheme
	}
	metadataText, err := jsoniter.MarshalToString(of.Metadata)
	if err != nil {
		return nil, err
	}
	protocolsText, err := jsoniter.MarshalToString(protocols)
	if err != nil {
		return nil, err
	}
	meta := metav1.ObjectMeta{
		Labels:      map[string]string{idLabel: of.ID, nameLabel: of.Name, versionLabel: of.Version},
		Annotations: map[string]string{metadataAnnotation: metadataText, protocolsAnnotation: protocolsText},
	}
	return jsoniter.Marshal(map[string]any{"metadata": meta})
}

func patchPod(ctx context.Context, client kubernetes.Interface, pod string, patch []byte) error {
	namespace, name, _ := strings.Cut(pod, "/")
	_, err := client.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	return err
}

// readMap treats the same texts as empty as kratos does.
func readMap(text string) (map[string]string, error) {
	out := map[string]string{}
	switch text {
	case "", "{}", "null", "nil", "[]":
		return out, nil
	}
	return out, jsoniter.UnmarshalFromString(text, &out)
}

func instanceOf(pod *corev1.Pod) (instance, error) {
	out := instance{
		ID:      pod.Labels[idLabel],
		Name:    pod.Labels[nameLabel],
		Version: pod.Labels[versionLabel],
	}
	var err error
	if out.Metadata, err = readMap(pod.Annotations[metadataAnnotation]); err != nil {
		return out, fmt.Errorf("%s/%s: %w", pod.Namespace, pod.Name, err)
	}
	protocols, err := readMap(pod.Annotations[protocolsAnnotation])
	if err != nil {
		return out, fmt.Errorf("%s/%s: %w", pod.Namespace, pod.Name, err)
	}
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			number := strconv.Itoa(int(port.ContainerPort))
			protocol := protocols[number]
			if protocol == "" && port.Name != "" {
				protocol, _, _ = strings.Cut(port.Name, "-")
			}
			if protocol == "" {
				protocol = string(port.Protocol)
			}
			out.Endpoints = append(out.Endpoints, protocol+"://"+net.JoinHostPort(pod.Status.PodIP, number))
		}
	}
	return out, nil
}

func instancesOf(lister listers.PodLister, service string) ([]instance, error) {
	pods, err := lister.List(labels.SelectorFromSet(labels.Set{nameLabel: service}))
	if err != nil {
		return nil, err
	}
	out := []instance{}
	for _, pod := range pods {
		if pod.Status.Phase != corev1.PodRunning {
			continue
		}
		one, err := instanceOf(pod)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	sort.Slice(out, func(i, j int) bool { return fmt.Sprint(out[i].Endpoints) < fmt.Sprint(out[j].Endpoints) })
	return out, nil
}

func followPods(ctx context.Context, client kubernetes.Interface) (cache.SharedIndexInformer, listers.PodLister, error) {
	factory := informers.NewSharedInformerFactory(client, 10*time.Minute)
	pods := factory.Core().V1().Pods()
	informer, lister := pods.Informer(), pods.Lister()
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, nil, fmt.Errorf("no data: %w", context.Cause(ctx))
	}
	return informer, lister, nil
}

func kratosGet(ctx context.Context, client kubernetes.Interface, service string) error {
	_, lister, err := followPods(ctx, client)
	if err != nil {
		return err
	}
	instances, err := instancesOf(lister, service)
	if err != nil {
		return err
	}
	return printLine(instances)
}

func kratosWatch(ctx context.Context, client kubernetes.Interface, service string) error {
	informer, lister, err := followPods(ctx, client)
	if err != nil {
		return err
	}
	changed := make(chan struct{}, 1)
	ring := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	if _, err := informer.AddEventHandler(cache.FilteringResourceEventHandler{
		FilterFunc: func(object any) bool {
			if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = gone.Obj
			}
			pod, ok := object.(*corev1.Pod)
			return ok && pod.Labels[nameLabel] == service
		},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { ring() },
			UpdateFunc: func(any, any) { ring() },
			DeleteFunc: func(any) { ring() },
		},
	}); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		instances, err := instancesOf(lister, service)
		if err != nil {
			return err
		}
		if err := printLine(instances); err != nil {
			return err
		}
	}
}
