/** The controller of one dialect. It decides which changes wake plans, and passes them to the reconciler. */
import type { LockKeeper } from '../coordination/lock-keeper.ts';
import type { BudgetPodCounter } from '../drain/budget-pod-counter.ts';
import type { Drains } from '../drain/running-drains.ts';
import type { ComponentMonitor } from '../health/component-monitor.ts';
import type { HealthMonitor } from '../health/monitor.ts';
import type { HookResult } from '../hooks/rules.ts';
import type { HookRunner } from '../hooks/runner.ts';
import type { KubeClient } from '../kube/client.ts';
import { type KubeObject, keyOf } from '../kube/resources.ts';
import { createInformer, type Informer, lateInformer } from '../kube/watch/informer.ts';
import { createNamedInformer } from '../kube/watch/named-informer.ts';
import { type Metrics, noMetrics } from '../runtime/metrics.ts';
import * as runtime from '../runtime/run-controller.ts';
import type { SilenceKeeper } from '../silences/keeper.ts';
import type { TraceExporter } from '../traces/exporter.ts';
import type { BasicTools } from '../util/tools.ts';
import { versionVerdict } from './assess/advance.ts';
import type { Dialect } from './contract/dialect.ts';
import { plansAmong } from './contract/plan-objects.ts';
import type { Watched } from './contract/world.ts';
import { createReconciler, type ReconcilerOptions } from './loop.ts';
import { titleOf } from './model/plan-reference.ts';
import type { Reason } from './model/reasons.ts';
import { isFinal } from './model/rollout.ts';
import {
  type NodeRolloutParts,
  type NodeRolloutWriter,
  nodeRolloutWriter,
} from './report/node-rollout-writer.ts';
import type { Notifier } from './report/notifier.ts';
import { createReporter, type ReporterParts } from './report/reporter.ts';
import { createTracer } from './report/tracer.ts';
import { gather } from './snapshot/gather.ts';
import type { OutsideParts } from './snapshot/outside-work.ts';
import { freshWorld, NOTHING, OwnWrites, viewsOf } from './snapshot/world.ts';

export interface RolloutParts
  extends BasicTools,
    Pick<ReconcilerOptions, 'policyFor' | 'prober' | 'drains' | keyof OutsideParts>,
    Pick<ReporterParts, 'recordEvent'> {
  /** Sends notifications about plans; undefined if this process sends none. */
  readonly notifier?: Notifier | undefined;
  /** The client that the informers read with. Informers run on every replica. */
  readonly reader: KubeClient;
  /** The client that writes. It writes only while this process leads. */
  readonly writer: KubeClient;
  readonly policies?: Informer | undefined;
  readonly metrics?: Metrics | undefined;
  /** The client that writes NodeRollouts; undefined if this process writes none. */
  readonly nodeRollouts?: Pick<NodeRolloutParts, 'client' | 'isShared'> | undefined;
  /** Sends traces of rollouts; undefined if this process sends none. */
  readonly traces?: TraceExporter | undefined;
}

/** The queue key of the clean-up of orphaned work. No object can have this name. */
const ORPHANED_WORK = '-orphaned-work-';
/** The most milliseconds that one reconcile may take. A reconcile sends a few requests, each with a deadline of its own. */
const TIMEOUT_MS = 120_000;
/**
 * The most milliseconds until a waiting plan is reconciled again. A timer for the start of the next window could fire
 * too late if the clock is changed or the machine is suspended.
 */
const AGAIN_MS = 600_000;
const ABSENT: KubeObject = { metadata: { name: '' } };
/** Milliseconds between two checks of whether decisions now need a kind that is not watched yet. */
const LOOK_MS = 5_000;

export interface RolloutController extends runtime.Controller {
  readonly plans: Informer;
  /** Returns the version rule that an unfinished plan breaks. Replicas that do not lead can call it, too. */
  readonly brokenRuleOf: (plan: KubeObject) => Reason | undefined;
  /** Returns what this process knows of the hooks of the plan. */
  readonly hooksOf: (plan: KubeObject) => readonly HookResult[];
  /** The writer of NodeRollouts, a part of the process that must stop after the controller; undefined if no NodeRollouts are written. */
  readonly nodeRollouts: NodeRolloutWriter | undefined;
}

/**
 * Returns the controller of a dialect. It also creates the informers of all kinds that the dialect
 * watches.
 */
export function rolloutController(dialect: Dialect, parts: RolloutParts): RolloutController {
  const { reader, writer, log, drains, health, hooks, locks, silences, notifier, clock } = parts;
  const { budgetPods, components } = parts;
  const { metrics = noMetrics } = parts;
  const { namespace, fieldSelector } = dialect.planObjects ?? {};
  const plans = createInformer(reader, dialect.plans, { log, clock, namespace, fieldSelector });
  const inTime = (each: Watched, informer: Informer): Informer => {
    if (!each.isNeeded) return informer;
    const isDue = async (abort: AbortSignal): Promise<boolean> => {
      const others = watched.filter((other) => !other.isNeeded);
      await Promise.all(others.map(async ({ informer: other }) => await other.whenSynced(abort)));
      return each.isNeeded?.(effects.world, clock.now()) === true;
    };
    return lateInformer(informer, { isDue, everyMs: LOOK_MS, clock });
  };
  const isPlan = (object: KubeObject): boolean => dialect.planObjects?.isPlan?.(object) ?? true;
  const watched = dialect.watched
    .filter(({ unreadable }) => unreadable !== true)
    .map((each) => ({ ...each, informer: inTime(each, informerOf(each, plans, parts)) }));
  const named = watched
    .filter(({ namesIn }) => namesIn !== undefined)
    .map(({ informer }) => informer);
  // A relevant change wakes every plan, because plans are few and a decision is cheap. If there are no plans, it wakes the clean-up
  // of orphaned work.
  const keys = (): string[] => {
    const all = plansAmong(dialect, plans.list()).map(keyOf);
    return all.length > 0 || !dialect.orphanedWork ? all : [ORPHANED_WORK];
  };
  const ownWrites = new OwnWrites(clock);
  const views = viewsOf([
    ...dialect.watched.map(({ resource }) => [resource, NOTHING] as const),
    ...watched.map(({ resource, informer }) => [resource, informer] as const),
  ]);
  const effects = { dialect, client: writer, world: freshWorld(views, ownWrites), ownWrites };
  const nodeRollouts = nodeRolloutsOf(dialect, plans, parts);
  const tracer = parts.traces && createTracer(dialect, parts.traces);
  const reporter = createReporter({ ...parts, ...effects, metrics, nodeRollouts, tracer });
  const options = { ...parts, ...effects, reporter, plans, nodeRollouts: parts.nodeRollouts };
  let reconcile = createReconciler(options);
  return {
    name: dialect.name,
    plans,
    brokenRuleOf: (plan) => {
      const snapshot = gather(dialect, plan, effects.world, clock.now(), { isReadOnly: true });
      return isFinal(snapshot.rollout)
        ? undefined
        : versionVerdict(snapshot, parts.policyFor(plan)).problems[0];
    },
    hooksOf: (plan) => hooks?.resultsOf(titleOf(dialect, keyOf(plan))) ?? [],
    sources: [
      runtime.fromObject(plans, (object, before = object) => isPlan(object) || isPlan(before)),
      ...watched.map((each) =>
        runtime.fromMapping(each.informer, keys, (now, before) =>
          before || each.advisory === true ? each.isRelevant(before ?? ABSENT, now) : true,
        ),
      ),
      ...(parts.policies
        ? [runtime.fromMapping(parts.policies, keys, runtime.generationChanged)]
        : []),
      ...[drains, health, components, locks, budgetPods, hooks, silences, notifier].flatMap(
        (each) => (each ? [fromChanges(each, plans, keys)] : []),
      ),
    ],
    nodeRollouts,
    begin: () => {
      nodeRollouts?.begin();
      tracer?.begin();
      reconcile = createReconciler(options);
    },
    reconcile: async (key, context) => {
      // The plan may be new, and the informers may not have read the objects that it names yet.
      for (const informer of named) await informer.whenSynced(context.abort);
      const { requeueAfterMs: ms, ...rest } = await reconcile(key, context);
      return { ...rest, requeueAfterMs: ms && Math.min(ms, AGAIN_MS) };
    },
    // Only one plan is reconciled at a time, because two decisions at once could both pass a gate on the health of the cluster.
    concurrency: 1,
    timeoutMs: TIMEOUT_MS,
  };
}

/**
 * Returns a source that wakes every plan when a drain makes progress, a health check or a hook takes another state, a lock changes, the
 * pods of budgets are counted for the first time, or a receiver or Alertmanager begins or ceases to accept requests.
 */
function fromChanges(
  changing: Pick<
    | BudgetPodCounter
    | ComponentMonitor
    | Drains
    | HealthMonitor
    | HookRunner
    | LockKeeper
    | Notifier
    | SilenceKeeper,
    'onChange'
  >,
  plans: Informer,
  keys: () => string[],
): runtime.EventSource {
  return { informer: plans, start: (wake) => changing.onChange(() => keys().forEach(wake)) };
}

function nodeRolloutsOf(
  dialect: Dialect,
  plans: Informer,
  { nodeRollouts, traces, clock, log }: RolloutParts,
): NodeRolloutWriter | undefined {
  return (
    nodeRollouts &&
    nodeRolloutWriter({
      ...nodeRollouts,
      dialect,
      plans: () => plans.list(),
      isTraced: traces !== undefined,
      clock,
      log,
    })
  );
}

function informerOf(
  watched: Watched,
  plans: Informer,
  { reader, log, clock }: RolloutParts,
): Informer {
  const { resource, namespace, labelSelector, fieldSelector, transform, namesIn } = watched;
  // Plans that are also targets share one informer, because two informers would be stale at different times.
  if (resource === plans.resource) return plans;
  const options = { log, clock, namespace, transform };
  if (namesIn === undefined)
    return createInformer(reader, resource, { ...options, labelSelector, fieldSelector });
  return createNamedInformer(reader, resource, { ...options, owners: plans, namesIn });
}
