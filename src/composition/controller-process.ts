/**
 * Creates the parts of a controller process and connects them. `refit controller` and all other processes that carry
 * out plans use it.
 */

import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { upgradePolicies } from '../api/kinds.ts';
import type { UpgradePolicy } from '../api/refit/upgrade-policy.ts';
import { lockHolder } from '../coordination/lock-holder.ts';
import { createLockKeeper } from '../coordination/lock-keeper.ts';
import { createBudgetPodCounter } from '../drain/budget-pod-counter.ts';
import { createDrains, type Drains } from '../drain/running-drains.ts';
import type { Dialect } from '../engine/contract/dialect.ts';
import { planFinder } from '../engine/contract/plan-objects.ts';
import type { Watched } from '../engine/contract/world.ts';
import type { Role } from '../engine/model/rollout.ts';
import type { policyOfPlan } from '../engine/policy/choose-policy.ts';
import type { PolicyEffects } from '../engine/policy/policy-effects.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from '../engine/policy/rollout-policy.ts';
import { createNotifier, type Notifier } from '../engine/report/notifier.ts';
import {
  type RolloutController,
  type RolloutParts,
  rolloutController,
} from '../engine/rollout-controller.ts';
import type { AskReadyz } from '../engine/snapshot/api-server-health.ts';
import { createComponentMonitor } from '../health/component-monitor.ts';
import type { HealthMonitor } from '../health/monitor.ts';
import { lookAtJob } from '../hooks/job-hook.ts';
import { createHookRunner, type HookRunner } from '../hooks/runner.ts';
import { askWebhook } from '../hooks/webhook.ts';
import type { KubeClient } from '../kube/client.ts';
import type { ClusterConfig } from '../kube/config/cluster-config.ts';
import { createElection, type Election, type ElectionOptions } from '../kube/election/election.ts';
import { leaderIdentity } from '../kube/election/lease-record.ts';
import { guardedClient, type WriteGuard } from '../kube/election/write-guard.ts';
import { type EventRecorder, eventRecorder } from '../kube/event-recorder.ts';
import { type KubeObject, leases } from '../kube/resources.ts';
import { ifFound, isForbidden, isNotFound } from '../kube/status-error.ts';
import { type TemplateJobs, templateJobs } from '../kube/template-jobs.ts';
import { boundedClient } from '../kube/transport/bounded-client.ts';
import { tryList } from '../kube/try-list.ts';
import { createInformer, type Informer, lateInformer } from '../kube/watch/informer.ts';
import { deliverer } from '../notify/deliver.ts';
import type { MessageSender } from '../notify/receivers.ts';
import type { DialectReadiness } from '../ready/context.ts';
import { createHealthServer } from '../runtime/health.ts';
import { createManager, type Manager, type Runnable } from '../runtime/manager.ts';
import { type Metrics, noMetrics } from '../runtime/metrics.ts';
import type { Controller } from '../runtime/run-controller.ts';
import { type Alertmanager, alertmanager } from '../silences/alertmanager.ts';
import { createSilenceKeeper, type SilenceKeeper } from '../silences/keeper.ts';
import type { TraceExporter } from '../traces/exporter.ts';
import { type Clock, sleep, systemClock } from '../util/clock.ts';
import { messageOf } from '../util/errors.ts';
import { onceForEach } from '../util/memo.ts';
import { printableUrl } from '../util/printable-url.ts';
import type { Tools } from '../util/tools.ts';
import { healthMonitorOf } from './health-monitor.ts';
import { homeOf, jobNamespacesOf } from './own-namespaces.ts';
import { proberOf } from './prober.ts';
import { standbyNotes } from './standby-notes.ts';
import { traceExporterOf } from './trace-exporter.ts';

export interface ControllerProcessOptions extends Pick<Tools, 'log'>, Partial<Omit<Tools, 'log'>> {
  readonly component: string;
  readonly config: ClusterConfig;
  readonly client: KubeClient;
  readonly dialects: readonly Dialect[] | ((tools: LeaderTools) => readonly Dialect[]);
  /** Which fields of a policy have an effect on the plans of each of these dialects, by the name of the dialect. */
  readonly policyEffects: Readonly<Record<string, PolicyEffects>>;
  /** Returns further controllers. `plans` has an informer for each dialect. */
  readonly controllers?: (tools: LeaderTools, plans: readonly Informer[]) => readonly Controller[];
  readonly lease?: Omit<ElectionOptions, 'client' | 'identity' | keyof Tools>;
  /** A Lease that the caller has already acquired. If neither `guard` nor `lease` is set, the process always leads. */
  readonly guard?: WriteGuard;
  /** The policy of plans that no UpgradePolicy covers. The default is DEFAULT_POLICY. */
  readonly policy?: RolloutPolicy;
  /**
   * The excluded roles. A plan that has a target with an excluded role ends, even if its policy allows that role. By
   * default, no role is excluded.
   */
  readonly excludedRoles?: readonly Role[];
  /**
   * Says whether the process may start if it cannot read UpgradePolicies. `required`: never. `if-installed`: only if
   * the kind is not installed. `if-allowed`: also if Refit has no right to list them.
   */
  readonly policies?: 'required' | 'if-installed' | 'if-allowed';
  /**
   * The namespaces in which the administrator lets Jobs of policies run; undefined if the administrator has given no
   * list.
   */
  readonly jobNamespaces?: readonly string[] | undefined;
  /** What messages say about the cluster. Without a name, they have the name of the context in the kubeconfig. */
  readonly sender?: MessageSender | undefined;
  /**
   * What the dialects know about a cluster before an upgrade, for policies that require it. Undefined if each node has a plan
   * of its own, because then no moment is before the upgrade of the cluster.
   */
  readonly readiness?: readonly DialectReadiness[] | undefined;
  /** False if something else, such as a Job, drains the nodes. */
  readonly drainsNodes?: boolean;
  /** The port of the API servers on every controller. The default is the port of the connection. */
  readonly apiPort?: number | undefined;
  readonly askThrough?: (ask: AskReadyz) => AskReadyz;
  /** `host:port` for /healthz, /readyz and /metrics. */
  readonly healthAddress?: string | undefined;
  readonly metrics?: Metrics;
  /** Starts another server of this process. The server answers even if the process does not lead. */
  readonly serve?: () => Promise<Runnable>;
  /**
   * The client of the cluster that has the NodeRollouts. Undefined if the NodeRollouts are in the same cluster as the
   * plans.
   */
  readonly nodeRolloutClient?: KubeClient;
  /** Tells people about plans. The default sends messages to the receivers of policies. */
  readonly notifier?: Notifier;
}

export interface LeaderTools {
  /** The client for writes. It writes only while this process holds the lease. */
  readonly writer: KubeClient;
  readonly drains: Drains;
  readonly events: EventRecorder;
}

export interface ControllerProcess {
  readonly dialects: readonly Dialect[];
  policyFor(dialect: Dialect, plan: KubeObject): RolloutPolicy;
  /** Returns the newest known object with this name that may be a plan. The plan may be of any dialect. */
  seen(name: string): KubeObject | undefined;
  /** Returns all objects of the kinds of plans, as this process has seen them. */
  seenAll(): readonly KubeObject[];
  /** Returns what this process knows about the hooks of the plan. */
  hooksOf(dialect: Dialect, plan: KubeObject): ReturnType<RolloutController['hooksOf']>;
  /** Returns the last known identity of the leader. The text is empty if there is no leader. */
  leader(): string;
  run(stop: AbortSignal): Promise<void>;
}

const FORBIDDEN_MS = 5_000;
const FORBIDDEN_PAUSE_MS = 1_000;
/** Milliseconds between two attempts to read UpgradePolicies that could not be read before. */
const LOOK_AGAIN_MS = 60_000;
/**
 * The most concurrent requests. This number is enough to keep an API server busy. Without a limit, the first wave of a
 * large plan would send thousands of requests at once.
 */
const REQUESTS_AT_ONCE = 32;

/**
 * Returns a function that adds the excluded roles to a policy. For the same policy, it always returns the same object,
 * because other code caches values for each policy object.
 */
function exclusionsOf({
  excludedRoles = [],
}: Pick<ControllerProcessOptions, 'excludedRoles'>): (policy: RolloutPolicy) => RolloutPolicy {
  if (excludedRoles.length === 0) return (policy) => policy;
  return onceForEach((policy: RolloutPolicy): RolloutPolicy => ({ ...policy, excludedRoles }));
}

/**
 * Returns a client whose writes stop when `origin` no longer holds its lease. Only requests that may come in bursts are
 * limited: requests that renew the lease use the client `own`, so they never wait.
 */
function leadersClient(own: KubeClient, origin: WriteGuard | undefined, clock: Clock): KubeClient {
  return boundedClient(origin ? guardedClient(own, origin, clock) : own, REQUESTS_AT_ONCE);
}

/**
 * Prepares the process. It rejects if a kind that must be watched cannot be listed, because an
 * informer would retry forever without an error.
 */
export async function prepareControllerProcess(
  options: ControllerProcessOptions,
  abort: AbortSignal,
): Promise<ControllerProcess> {
  const { component, client, lease, log } = options;
  const { clock = systemClock, random = Math.random, metrics = noMetrics } = options;
  // The environment variables for traces are read first, so that a wrong variable is reported even if the API server
  // does not answer.
  const traces = traceExporterOf(process.env, { clock, random, log, metrics });
  const identity = leaderIdentity(hostname(), randomBytes(8).toString('hex'));
  const election = lease && createElection({ client, ...lease, identity, clock, random, log });
  const origin = election ?? options.guard;
  const leading = (own: KubeClient): KubeClient => leadersClient(own, origin, clock);
  const writer = leading(client);
  const manager = createManager({ ...(election ? { election } : {}), clock, random, log, metrics });
  // The list is empty until the policies are read below. No drain begins before that.
  let listPolicies = (): readonly UpgradePolicy[] => [];
  const usesRequests = (): boolean =>
    listPolicies().some(({ spec }) => spec.drain?.evictionRequests === 'Use');
  // If this process is a candidate for a Lease, another process continues its drains. If it has no Lease, no other
  // process may continue them.
  const handsOver = election !== undefined;
  const drains = createDrains({ client: writer, clock, random, log, usesRequests, handsOver });
  const events = eventRecorder({ client, component, clock, random, log });
  const tools = { writer, drains, events };
  const given = typeof options.dialects === 'function' ? options.dialects(tools) : options.dialects;
  const templates = templateJobs(writer, jobNamespacesOf(options, given));
  await askForNeeded(given, options, abort);
  // From this request on, a refusal by the API server is final. Before this point, an API server that has just started may refuse every
  // request for some seconds.
  const [policies, dialects] = await Promise.all([
    findPolicies(options, abort),
    readable(given, options, abort),
  ]);
  listPolicies = () => policies.list();
  const withExclusions = exclusionsOf(options);
  const reader = { jobs: templates.namespaces };
  const { policy: uncovered = DEFAULT_POLICY } = options;
  let choose: typeof policyOfPlan | undefined;
  // `choose` is loaded before any controller starts. Until then, only hooks may ask for a policy, and they get the default one.
  const policyFor = (dialect: Dialect, plan: KubeObject): RolloutPolicy =>
    withExclusions(choose?.(dialect, policies.list(), plan, uncovered, reader) ?? uncovered);
  const nodeRollouts = nodeRolloutsOf(options, leading, writer);
  const health = healthMonitorOf({ ...options, clock, templates, writer }, abort);
  const shared = {
    traces,
    health,
    templates,
    reader: client,
    writer,
    nodeRollouts,
    policies,
    clock,
    random,
    log,
    metrics,
  };
  const parts = { ...options, election, ...shared, ...tools, dialects, policyFor, abort };
  const rollouts = addControllers(manager, parts);
  const plans = rollouts.map((rollout) => rollout.plans);
  for (const controller of options.controllers?.(tools, plans) ?? [])
    manager.addController(controller);
  manager.addPreparation(async (start) => {
    const { healthAddress: address } = options;
    const waitingFor = (): string[] => manager.waitingFor();
    if (address !== undefined) start(await createHealthServer({ address, metrics, waitingFor }));
    if (options.serve) start(await options.serve());
    ({ policyOfPlan: choose } = await import('../engine/policy/choose-policy.ts'));
  });
  announce(options, identity, dialects);
  return {
    dialects,
    policyFor,
    seen: (name) => rollouts.flatMap(({ plans }) => plans.get(name) ?? [])[0],
    seenAll: () => rollouts.flatMap(({ plans }) => plans.list()),
    hooksOf: ({ name }, plan) => rollouts.find((each) => each.name === name)?.hooksOf(plan) ?? [],
    leader: () => election?.leader() ?? identity,
    run: async (stop) => await manager.run(stop),
  };
}

/** Logs who starts, and what it serves. */
function announce(
  { component, config, log }: ControllerProcessOptions,
  identity: string,
  served: readonly Dialect[],
): void {
  const dialects = served.map(({ name }) => name);
  log.info(`${component} starts`, { identity, server: printableUrl(config.server), dialects });
}

/** Returns the client for NodeRollouts, which may be in another cluster than the plans. */
function nodeRolloutsOf(
  { nodeRolloutClient: other }: ControllerProcessOptions,
  leading: (own: KubeClient) => KubeClient,
  writer: KubeClient,
) {
  return { client: other ? leading(other) : writer, isShared: other !== undefined };
}

function silenceKeeper(parts: ControllerParts, client: KubeClient): SilenceKeeper {
  return createSilenceKeeper(parts.clock, alertmanagerFor(parts, client), parts.metrics);
}

function alertmanagerFor(
  { config, clock }: Pick<ControllerParts, 'config' | 'clock'>,
  client: KubeClient,
): Alertmanager {
  return alertmanager({ client, namespace: homeOf(config), environment: process.env, clock });
}

function hookRunner({ config, writer: client, templates, clock }: ControllerParts): HookRunner {
  const tools = { client, namespace: homeOf(config), environment: process.env, clock };
  return createHookRunner(clock, async (run, abort) => {
    const { action } = run.hook;
    return action.kind === 'job'
      ? await lookAtJob(templates, run, action, abort)
      : await askWebhook(tools, run, action, abort);
  });
}

/**
 * A missing right causes a warning, because the policies that Refit may not read might apply to plans. If the kind is
 * not installed, no policy exists.
 */
async function findPolicies(
  options: ControllerProcessOptions,
  abort: AbortSignal,
): Promise<Informer<UpgradePolicy>> {
  const { client, policies = 'required', log, clock = systemClock } = options;
  const informer = createInformer(client, upgradePolicies, { log, clock });
  const ask = async (): Promise<true> => await tryList(client, upgradePolicies, { abort });
  try {
    await ask();
    return informer;
  } catch (error) {
    const isMissing = policies !== 'required' && isNotFound(error);
    if (!isMissing && !(policies === 'if-allowed' && isForbidden(error))) throw error;
    // A missing right deserves a warning, because the policies that we may not read might apply to plans. If the kind is not installed,
    // there is no policy.
    const level = isMissing ? 'info' : 'warn';
    const problem = messageOf(error);
    log[level](
      'cannot read UpgradePolicies: their windows, pauses, blackouts and limits do not apply',
      { problem },
    );
  }
  const isDue = async (): Promise<boolean> => {
    const isReadable = await ask().catch(() => false);
    if (isReadable) log.info('UpgradePolicies are readable now, and apply from now on');
    return isReadable;
  };
  return lateInformer(informer, { isDue, everyMs: LOOK_AGAIN_MS, clock });
}

async function askForNeeded(
  dialects: readonly Dialect[],
  options: ControllerProcessOptions,
  abort: AbortSignal,
) {
  const { client, lease, policies, clock = systemClock } = options;
  const needed = dialects.flatMap(({ plans, planObjects, watched }) => [
    {
      resource: plans,
      namespace: planObjects?.namespace,
      fieldSelector: planObjects?.fieldSelector,
    },
    ...watched.filter(({ namesIn, advisory }) => namesIn === undefined && advisory !== true),
  ]);
  const ask = async (): Promise<unknown> =>
    await Promise.all([
      ...needed.map(
        async ({ resource, namespace, fieldSelector }) =>
          await tryList(client, resource, { abort, namespace, fieldSelector }),
      ),
      // The Lease may be missing, because the first leader creates it.
      lease && ifFound(client.get(leases, lease.name, { namespace: lease.namespace, abort })),
    ]);
  const end = clock.monotonic() + (policies === 'if-allowed' ? FORBIDDEN_MS : 0);
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!isForbidden(error) || clock.monotonic() >= end) throw error;
      await sleep(clock, FORBIDDEN_PAUSE_MS, abort);
    }
  }
}

/** Returns the dialects. An advisory kind that Refit has no right to list is marked as unreadable. */
async function readable(
  dialects: readonly Dialect[],
  { client, log }: ControllerProcessOptions,
  abort: AbortSignal,
) {
  const triedOn = async (each: Watched): Promise<Watched> => {
    const { resource, namespace, advisory } = each;
    try {
      if (advisory === true) await tryList(client, resource, { abort, namespace });
      return each;
    } catch (error) {
      if (!isForbidden(error)) throw error;
      log.info(`cannot read ${resource.plural}; they will not be reported`, {
        problem: messageOf(error),
      });
      return { ...each, unreadable: true };
    }
  };
  const tried = dialects.map(async (each) => ({
    ...each,
    watched: await Promise.all(each.watched.map(triedOn)),
  }));
  return await Promise.all(tried);
}

interface ControllerParts
  extends Omit<ControllerProcessOptions, 'policies' | 'dialects' | keyof Tools>,
    LeaderTools,
    Tools {
  readonly dialects: readonly Dialect[];
  readonly policyFor: (dialect: Dialect, plan: KubeObject) => RolloutPolicy;
  readonly policies: Informer<UpgradePolicy>;
  readonly health: HealthMonitor;
  readonly templates: TemplateJobs;
  readonly traces: TraceExporter | undefined;
  readonly reader: KubeClient;
  readonly nodeRollouts: RolloutParts['nodeRollouts'];
  readonly metrics: Metrics;
  readonly election: Election | undefined;
  readonly abort: AbortSignal;
}

function addControllers(manager: Manager, parts: ControllerParts): RolloutController[] {
  const { dialects, clock, writer, events, policies, drainsNodes = true, templates } = parts;
  // The event recorder stops after the controllers, and writes what they reported last.
  manager.addRunnable(events);
  // The drains are added before the controllers, so that the drains stop after the controllers, and before the lease is released.
  const drains = { name: 'drains', run: async (term: AbortSignal) => await parts.drains.run(term) };
  if (drainsNodes) manager.addRunnable(drains, 'leading');
  manager.addRunnable(
    { name: 'health checks', run: async (term) => await parts.health.run(term) },
    'leading',
  );
  const titles = dialects.map(({ name }) => name);
  const locks = createLockKeeper({
    client: writer,
    clock,
    holder: lockHolder(titles, parts.lease),
  });
  manager.addRunnable({ name: 'locks', run: async (term) => await locks.run(term) }, 'leading');
  const hooks = hookRunner(parts);
  manager.addRunnable({ name: 'hooks', run: async (term) => await hooks.run(term) }, 'leading');
  const budgetPods = createBudgetPodCounter({ client: writer, clock, log: parts.log });
  manager.addRunnable(budgetPods, 'leading');
  const components = createComponentMonitor({ client: writer, clock, log: parts.log });
  manager.addRunnable(components, 'leading');
  const silences = silenceKeeper(parts, writer);
  manager.addRunnable(
    { name: 'silences', run: async (term) => await silences.run(term) },
    'leading',
  );
  const recordEvent: RolloutParts['recordEvent'] = (object, { type, reason }) =>
    events.record(object, { type, reason: reason.code, message: reason.message });
  const notifier = notifierOf(parts, recordEvent);
  if (notifier) manager.addRunnable(notifier, 'leading');
  if (parts.traces) manager.addRunnable(parts.traces, 'leading');
  const rollouts = dialects.map((dialect) =>
    rolloutController(dialect, {
      ...parts,
      notifier,
      locks,
      budgetPods,
      components,
      hooks,
      silences,
      drains: drainsNodes ? parts.drains : undefined,
      prober: proberOf(parts),
      policyFor: (plan) => parts.policyFor(dialect, plan),
      nodeRollouts: parts.nodeRollouts,
      recordEvent,
    }),
  );
  for (const rollout of rollouts) {
    if (rollout.nodeRollouts) manager.addRunnable(rollout.nodeRollouts, 'leading');
    manager.addController(rollout);
  }
  if (parts.election) manager.addRunnable(standbyNotes(parts.election, rollouts, parts));
  const plans = Object.fromEntries(rollouts.map((rollout) => [rollout.name, rollout.plans]));
  manager.addInformer(policies);
  // The schema of policies takes a long time to load, so it is loaded only when it is needed.
  manager.addPreparation(async () => {
    const { policyController } = await import('../engine/policy/policy-controller.ts');
    manager.addController(
      policyController({
        writer,
        clock,
        policies,
        jobs: templates.namespaces,
        plans,
        ...planFinder(dialects),
        effects: parts.policyEffects,
        secretsIn: homeOf(parts.config),
        alertmanager: alertmanagerFor(parts, writer),
      }),
    );
  });
  return rollouts;
}

function notifierOf(
  { notifier, nodeRollouts, config, writer, clock, log, metrics, sender }: ControllerParts,
  recordEvent: RolloutParts['recordEvent'],
): Notifier | undefined {
  if (notifier !== undefined || nodeRollouts === undefined) return notifier;
  const tools = {
    client: writer,
    namespace: homeOf(config),
    environment: process.env,
    clock,
    sender: { ...sender, cluster: sender?.cluster ?? config.context },
  };
  const { client } = nodeRollouts;
  return createNotifier({ client, clock, log, metrics, deliver: deliverer(tools), recordEvent });
}
