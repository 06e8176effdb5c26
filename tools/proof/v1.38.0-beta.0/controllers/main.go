// Runs the two controllers of Kubernetes that carry out EvictionRequests, and no other, against the API server of a kubeconfig.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/pkg/controller/evictionrequest"
	"k8s.io/kubernetes/pkg/controller/imperativeevictionresponder"
)

const workers = 4

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	lifecycle := factory.Lifecycle().V1alpha1()
	pods := factory.Core().V1().Pods()
	requests, err := evictionrequest.NewController(
		ctx, "evictionrequest-controller", lifecycle.Evictions(), lifecycle.EvictionRequests(), pods, client)
	if err != nil {
		return err
	}
	responder, err := imperativeevictionresponder.NewController(
		ctx, "imperative-eviction-responder-controller", lifecycle.Evictions(), pods, client)
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	var running sync.WaitGroup
	running.Go(func() { requests.Run(ctx, workers) })
	running.Go(func() { responder.Run(ctx, workers) })
	running.Wait()
	return nil
}
