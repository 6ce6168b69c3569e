// Command apply changes objects with client-go's apply configurations: two managers share a
// Deployment, get conflicts, take over and give up fields, and read back their own fields. It
// prints "ok", or the error.
//
// \tapply -server URL
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	autoscalingv1 "k8s.io/client-go/applyconfigurations/autoscaling/v1"
	appsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"
	metaac "k8s.io/client-go/applyconfigurations/meta/v1"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const namespace = "default"

func check(condition bool, format string, arguments ...any) {
	if !condition {
		fmt.Printf(format+"\n", arguments...)
		os.Exit(1)
	}
}

func must[T any](value T, err error) T {
	check(err == nil, "%v", err)
	return value
}

func by(manager string) metav1.ApplyOptions { return metav1.ApplyOptions{FieldManager: manager} }

func container(image string) *corev1.ContainerApplyConfiguration {
	return corev1.Container().WithName("main").WithImage(image)
}

func web() *appsv1.DeploymentApplyConfiguration {
	labels := map[string]string{"app": "web"}
	return appsv1.Deployment("web", namespace).WithSpec(appsv1.DeploymentSpec().
		WithReplicas(2).
		WithSelector(metaac.LabelSelector().WithMatchLabels(labels)).
		WithTemplate(corev1.PodTemplateSpec().WithLabels(labels).
			WithSpec(corev1.PodSpec().WithContainers(container("web:1")))))
}

// managers returns the owners of fields, as "manager operation subresource".
func managers(object metav1.Object) map[string]bool {
	out := map[string]bool{}
	for _, entry := range object.GetManagedFields() {
		out[strings.TrimSpace(fmt.Sprintf("%s %s %s", entry.Manager, entry.Operation, entry.Subresource))] = true
	}
	return out
}

func deployments(ctx context.Context, client *kubernetes.Clientset) {
	api := client.AppsV1().Deployments(namespace)
	made := must(api.Apply(ctx, web(), by("owner")))
	check(managers(made)["owner Apply"], "owners: %v", managers(made))
	again := must(api.Apply(ctx, web(), by("owner")))
	check(again.ResourceVersion == made.ResourceVersion, "the same apply writes again")

	// Another manager adds a container, and gets a conflict for another image.
	sidecar := appsv1.Deployment("web", namespace).WithSpec(appsv1.DeploymentSpec().
		WithTemplate(corev1.PodTemplateSpec().WithSpec(corev1.PodSpec().
			WithContainers(corev1.Container().WithName("sidecar").WithImage("side:1")))))
	both := must(api.Apply(ctx, sidecar, by("mesh")))
	check(len(both.Spec.Template.Spec.Containers) == 2, "containers: %d", len(both.Spec.Template.Spec.Containers))
	other := appsv1.Deployment("web", namespace).WithSpec(appsv1.DeploymentSpec().
		WithTemplate(corev1.PodTemplateSpec().WithSpec(corev1.PodSpec().
			WithContainers(container("web:2"), corev1.Container().WithName("sidecar").WithImage("side:1")))))
	_, err := api.Apply(ctx, other, by("mesh"))
	check(apierrors.IsConflict(err), "no conflict: %v", err)
	causes := err.(apierrors.APIStatus).Status().Details.Causes
	check(len(causes) == 1 && causes[0].Field == `.spec.template.spec.containers[name="main"].image` &&
		causes[0].Type == metav1.CauseTypeFieldManagerConflict, "causes: %+v", causes)
	taken := must(api.Apply(ctx, other, metav1.ApplyOptions{FieldManager: "mesh", Force: true}))
	check(taken.Spec.Template.Spec.Containers[0].Image == "web:2", "not taken over")

	// Each manager reads back its own fields.
	mine := must(appsv1.ExtractDeployment(taken, "owner"))
	check(*mine.Spec.Replicas == 2 && len(mine.Spec.Template.Spec.Containers) == 1, "extracted: %+v", mine.Spec)
	check(mine.Spec.Template.Spec.Containers[0].Image == nil, "the image was taken over")
	theirs := must(appsv1.ExtractDeployment(taken, "mesh"))
	check(theirs.Spec.Replicas == nil && len(theirs.Spec.Template.Spec.Containers) == 2, "extracted: %+v", theirs.Spec)
	mine.Spec.WithReplicas(3)
	more := must(api.Apply(ctx, mine, by("owner")))
	check(*more.Spec.Replicas == 3 && len(more.Spec.Template.Spec.Containers) == 2, "replicas: %d", *more.Spec.Replicas)

	// Giving up a field removes the field if it has no other owner.
	less := must(api.Apply(ctx, appsv1.Deployment("web", namespace).WithSpec(appsv1.DeploymentSpec().
		WithTemplate(corev1.PodTemplateSpec().WithSpec(corev1.PodSpec().WithContainers(container("web:2"))))), by("mesh")))
	check(len(less.Spec.Template.Spec.Containers) == 1, "the sidecar stays")

	// Subresources have separate owners.
	scaled := must(api.ApplyScale(ctx, "web", autoscalingv1.Scale().WithName("web").WithNamespace(namespace).
		WithSpec(autoscalingv1.ScaleSpec().WithReplicas(5)), metav1.ApplyOptions{FieldManager: "scaler", Force: true}))
	check(scaled.Spec.Replicas == 5, "scale: %d", scaled.Spec.Replicas)
	status := must(api.ApplyStatus(ctx, appsv1.Deployment("web", namespace).WithStatus(appsv1.DeploymentStatus().
		WithReplicas(5).WithConditions(appsv1.DeploymentCondition().WithType("Available").WithStatus("True").
		WithLastTransitionTime(metav1.NewTime(time.Unix(1700000000, 0))).WithReason("Test").WithMessage("m"))), by("reporter")))
	check(status.Status.Replicas == 5 && *status.Spec.Replicas == 5, "status: %+v", status.Status)
	check(managers(status)["reporter Apply status"] && managers(status)["scaler Apply scale"], "owners: %v", managers(status))
	reported := must(appsv1.ExtractDeploymentStatus(status, "reporter"))
	check(len(reported.Status.Conditions) == 1 && reported.Spec == nil, "extracted: %+v", reported)

	// An apply of a complete existing object changes only its owners.
	before := must(api.Get(ctx, "web", metav1.GetOptions{}))
	all := must(appsv1.ExtractDeployment(before, "owner"))
	after := must(api.Apply(ctx, all, by("owner")))
	check(equality.Semantic.DeepEqual(before.Spec, after.Spec), "the spec has changed")

	// A dry run is not stored; an apply without a field manager is rejected.
	dry := must(api.Apply(ctx, web(), metav1.ApplyOptions{FieldManager: "dry", Force: true, DryRun: []string{metav1.DryRunAll}}))
	check(managers(dry)["dry Apply"], "owners: %v", managers(dry))
	kept := must(api.Get(ctx, "web", metav1.GetOptions{}))
	check(!managers(kept)["dry Apply"] && kept.ResourceVersion == after.ResourceVersion, "the dry run was kept")
	_, err = api.Apply(ctx, web(), metav1.ApplyOptions{})
	check(err != nil && strings.Contains(err.Error(), "fieldManager"), "no error: %v", err)
}

func configMaps(ctx context.Context, client *kubernetes.Clientset) {
	api := client.CoreV1().ConfigMaps(namespace)
	must(api.Apply(ctx, corev1.ConfigMap("shared", namespace).WithData(map[string]string{"a": "1", "b": "1"}), by("one")))
	must(api.Apply(ctx, corev1.ConfigMap("shared", namespace).WithData(map[string]string{"b": "1", "c": "1"}), by("two")))
	left := must(api.Apply(ctx, corev1.ConfigMap("shared", namespace), by("one")))
	check(len(left.Data) == 2 && left.Data["b"] == "1", "data: %v", left.Data)
	// An apply with a uid applies only to the object with that uid, and does not create it.
	_, err := api.Apply(ctx, corev1.ConfigMap("absent", namespace).WithUID("other"), by("one"))
	check(apierrors.IsConflict(err), "no conflict: %v", err)
}

func main() {
	config := &rest.Config{QPS: -1}
	flag.StringVar(&config.Host, "server", "http://127.0.0.1:8001", "the API server")
	flag.Parse()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	client := must(kubernetes.NewForConfig(config))
	deployments(ctx, client)
	configMaps(ctx, client)
	fmt.Println("ok")
}
