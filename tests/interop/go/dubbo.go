package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes"
)

const (
	dubboLabel      = "dubbo.io/label"
	dubboAnnotation = "dubbo.io/annotation"
	dubboConsumer   = "dubbo.io.consumer"
	dubboProvider   = "dubbo.io.provider"
)

type record struct {
	Key   string `json:"k"`
	Value string `json:"v"`
}

func readRecords(annotation string) ([]record, error) {
	if annotation == "" {
		return nil, nil
	}
	text, err := base64.URLEncoding.DecodeString(annotation)
	if err != nil {
		return nil, err
	}
	var out []record
	return out, json.Unmarshal(text, &out)
}

// twoWayPatch creates a patch like dubbo-go: from two pods with metadata only.
func twoWayPatch(before, after corev1.Pod) ([]byte, error) {
	old, err := json.Marshal(before)
	if err != nil {
		return nil, err
	}
	changed, err := json.Marshal(after)
	if err != nil {
		return nil, err
	}
	return strategicpatch.CreateTwoWayMergePatch(old, changed, corev1.Pod{})
}

// dubboCreate labels the pod as a provider, unless it has the label, and appends a record.
func dubboCreate(ctx context.Context, client kubernetes.Interface, pod, key, value string) error {
	namespace, name, _ := strings.Cut(pod, "/")
	current, err := client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	var before, after corev1.Pod
	before.Labels, after.Labels = map[string]string{}, map[string]string{}
	before.Annotations, after.Annotations = map[string]string{}, map[string]string{}
	for k, v := range current.Labels {
		before.Labels[k], after.Labels[k] = v, v
	}
	for k, v := range current.Annotations {
		before.Annotations[k], after.Annotations[k] = v, v
	}
	if _, labelled := current.Labels[dubboLabel]; !labelled {
		after.Labels[dubboLabel] = dubboProvider
	}
	records, err := readRecords(current.Annotations[dubboAnnotation])
	if err != nil {
		return err
	}
	text, err := json.Marshal(append(records, record{key, value}))
	if err != nil {
		return err
	}
	after.Annotations[dubboAnnotation] = base64.URLEncoding.EncodeToString(text)
	patch, err := twoWayPatch(before, after)
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	return err
}

// dubboGet prints the records, whose key begins with `prefix`, of all participating pods.
func dubboGet(ctx context.Context, client kubernetes.Interface, prefix string) error {
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		LabelSelector: fmt.Sprintf("%s in (%s,%s)", dubboLabel, dubboConsumer, dubboProvider),
	})
	if err != nil {
		return err
	}
	out := []record{}
	for i := range pods.Items {
		records, err := readRecords(pods.Items[i].Annotations[dubboAnnotation])
		if err != nil {
			return err
		}
		for _, one := range records {
			if strings.HasPrefix(one.Key, prefix) {
				out = append(out, one)
			}
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Key < out[j].Key })
	return printLine(out)
}
