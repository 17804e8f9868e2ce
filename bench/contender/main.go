// Command contender is a provider on the published crossplane-runtime, wired as providers are, for the
// same cloud that Concert's example provider serves. Benchmarks run it beside Concert.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/feature"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/providerconfig"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"concert.dev/concert/bench/contender/api"
)

type options struct {
	kubeconfig, cloud, metrics string
	rate                       int
	poll, sync, timeout        time.Duration
	limit                      bool
}

func main() {
	var o options
	// controller-runtime has registered --kubeconfig.
	flag.StringVar(&o.cloud, "cloud", "", "URL of the example provider's control port")
	flag.IntVar(&o.rate, "max-reconcile-rate", 10, "reconciles per second in all, and at once per kind")
	flag.DurationVar(&o.poll, "poll", time.Minute, "how often to look at each external thing")
	flag.DurationVar(&o.sync, "sync", time.Hour, "how often to look at every object")
	flag.DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long one reconcile may take")
	flag.StringVar(&o.metrics, "metrics-bind-address", ":8080", "where to serve /metrics and /requests")
	flag.BoolVar(&o.limit, "limit", true, "limit reconciles and API calls per second, as providers do")
	flag.Parse()
	o.kubeconfig = flag.Lookup("kubeconfig").Value.String()
	if err := run(ctrl.SetupSignalHandler(), o); err != nil {
		log.SetFlags(0)
		log.Fatal("error: ", err)
	}
}

func run(ctx context.Context, o options) error {
	crlog.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	if o.cloud == "" {
		return fmt.Errorf("--cloud is required")
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return err
	}
	counted := newRequests()
	config.Wrap(counted.wrap)
	if o.limit {
		config = ratelimiter.LimitRESTConfig(config, o.rate)
	} else {
		config.QPS = -1
	}
	manager, err := newManager(config, o, counted)
	if err != nil {
		return err
	}
	if err := setup(manager, o); err != nil {
		return err
	}
	return manager.Start(ctx)
}

func newManager(config *rest.Config, o options, counted *requests) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := api.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return ctrl.NewManager(config, ctrl.Options{
		Scheme:         scheme,
		LeaderElection: false,
		Cache:          cache.Options{SyncPeriod: &o.sync},
		Metrics: metricsserver.Options{
			BindAddress:   o.metrics,
			ExtraHandlers: map[string]http.Handler{"/requests": counted},
		},
	})
}

func setup(manager ctrl.Manager, o options) error {
	recorder := managed.NewMRMetricRecorder()
	metrics.Registry.MustRegister(recorder)
	opts := controller.Options{
		Logger:                  logging.NewNopLogger(),
		MaxConcurrentReconciles: o.rate,
		PollInterval:            o.poll,
		GlobalRateLimiter:       ratelimiter.NewGlobal(o.rate),
		Features:                &feature.Flags{},
		MetricOptions:           &controller.MetricOptions{MRMetrics: recorder},
	}
	if err := account(manager, opts); err != nil {
		return err
	}
	name := managed.ControllerName(api.ExampleResourceKind.GroupKind().String())
	connector := connector{
		kube:   manager.GetClient(),
		usages: resource.NewLegacyProviderConfigUsageTracker(manager.GetClient(), &api.ProviderConfigUsage{}),
		cloud:  newCloud(o.cloud, o.rate),
	}
	reconciler := managed.NewReconciler(manager, resource.ManagedKind(api.ExampleResourceKind),
		managed.WithExternalConnector(connector),
		// Ids are made up by the cloud, so an object does not start with its own name as the external one.
		managed.WithInitializers(),
		managed.WithLogger(opts.Logger),
		managed.WithPollInterval(opts.PollInterval),
		managed.WithTimeout(o.timeout),
		managed.WithManagementPolicies(),
		managed.WithMetricRecorder(opts.MetricOptions.MRMetrics),
		managed.WithRecorder(event.NewAPIRecorder(manager.GetEventRecorderFor(name))),
	)
	builder := ctrl.NewControllerManagedBy(manager).
		Named(name).
		WithOptions(opts.ForControllerRuntime()).
		WithEventFilter(resource.DesiredStateChanged()).
		For(&api.ExampleResource{})
	if !o.limit {
		return builder.Complete(reconciler)
	}
	return builder.Complete(ratelimiter.NewReconciler(name, reconciler, opts.GlobalRateLimiter))
}

// accountings per second: what providers start with. Each lists every usage, so it is limited even where
// nothing else is.
const accountings = 10

// account starts the accounting of ProviderConfigs, which protects those that are used.
func account(manager ctrl.Manager, opts controller.Options) error {
	kinds := api.ProviderConfigKinds
	name := providerconfig.ControllerName(kinds.Config.GroupKind().String())
	reconciler := providerconfig.NewReconciler(manager, kinds,
		providerconfig.WithLogger(opts.Logger),
		providerconfig.WithRecorder(event.NewAPIRecorder(manager.GetEventRecorderFor(name))),
	)
	return ctrl.NewControllerManagedBy(manager).
		Named(name).
		WithOptions(opts.ForControllerRuntime()).
		For(&api.ProviderConfig{}).
		Watches(&api.ProviderConfigUsage{}, &resource.EnqueueRequestForProviderConfig{}).
		Complete(ratelimiter.NewReconciler(name, reconciler, ratelimiter.NewGlobal(accountings)))
}
