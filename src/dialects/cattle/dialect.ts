/** The dialect of Rancher's system-upgrade-controller: its Plans as rollouts of the engine, its Jobs as signals. */
import { type CattlePlan, cattlePlans } from '../../api/cattle/plan.ts';
import type { Dialect, Watched } from '../../engine/dialect.ts';
import { isRelevant, trimNode } from '../../engine/observe/predicates.ts';
import { type RolloutPolicy, WITHOUT_DEADLINES } from '../../engine/policy/rollout-policy.ts';
import { jobs, nodes, pods, secrets } from '../../kube/resources.ts';
import type { Job, KubeObject, Secret } from '../../kube/types.ts';
import { sameJson } from '../../util/json.ts';
import { attemptsOf } from './attempts.ts';
import { unknownsOf, withStalls } from './conditions.ts';
import { type CattleConfig, DEFAULT_JOB_SETTINGS } from './config.ts';
import { trimJob, trimPod } from './kept.ts';
import { hashedSecrets } from './latest.ts';
import { withDrainOf } from './leader-drain.ts';
import { leftOvers } from './left-overs.ts';
import { CONTROL_PREFIX, PLAN_LABEL } from './names.ts';
import { cattleEvents } from './plan-events.ts';
import { stallIn } from './pods.ts';
import { project } from './project.ts';
import { resolve } from './resolve.ts';
import { jobSignal, occupantOf } from './signal.ts';
import { windowsOf } from './window.ts';

const watchedNodes: Watched = { resource: nodes, isRelevant, transform: trimNode };
const watchedJobs: Watched = {
  resource: jobs,
  labelSelector: PLAN_LABEL,
  isRelevant: isRelevantJobChange,
  transform: trimJob,
};
/** The original's rights do not let the controller read them. */
const watchedPods: Watched = {
  resource: pods,
  labelSelector: PLAN_LABEL,
  optional: true,
  advisory: true,
  transform: trimPod,
  isRelevant: (before, after) => stallIn(before) !== stallIn(after),
};

/** For the controller of one namespace. */
export function cattle(config: CattleConfig): Dialect<CattlePlan> {
  const { namespace } = config;
  const attempts = attemptsOf(config);
  return {
    ...viewOf(config),
    signal: jobSignal(config, attempts),
    occupantOf: config.plansShareNodes === true ? () => undefined : occupantOf,
    scope: { namespace },
    watched: [
      watchedNodes,
      watchedJobs,
      { ...watchedPods, namespace },
      { resource: secrets, namespace, isRelevant: isRelevantSecretChange, namesIn: hashedSecrets },
    ],
    resolve: (plan, world, now) =>
      resolve(plan, world, now, { attempts, secretOf: (name) => world.get(secrets, name, namespace) }),
  };
}

/** For commands that only read, in all namespaces and without access to Secrets. */
export const cattleView: Dialect<CattlePlan> = viewOf({
  name: 'system-upgrade-controller',
  namespace: '',
  job: { ...DEFAULT_JOB_SETTINGS, drainInJob: false },
});

function viewOf(config: CattleConfig): Dialect<CattlePlan> {
  return {
    name: 'cattle',
    plans: cattlePlans,
    statusRecord: {},
    controlPrefix: CONTROL_PREFIX,
    watched: [watchedNodes, watchedJobs, watchedPods],
    resolve: (plan, world, now) => resolve(plan, world, now, {}),
    project,
    planEvents: cattleEvents,
    ordersByUid: true,
    unknownsOf,
    withStalls,
    planRules: { apply: (plan, policy) => policyOf(plan, policy, config) },
    orphanedWork: { plans: (world, plans) => leftOvers(config.namespace, world, plans) },
    // Held Jobs wait for the leader's drain; the others drain, and the leader only uncordons.
    drainDelegation: { always: true, nodeOf: (_stage, { name }, world) => world.get(nodes, name) },
    occupantOf,
    // Other plans, controllers and dialects make nodes unavailable too: `maxUnavailable` of a policy counts all.
    fleet: { nodes: (world) => world.list(nodes) },
    objectOf: (_stage, { name }, world) => world.get(nodes, name),
    // A Plan does not say which nodes are controllers, so API server health is not checked.
    endpoints: () => [],
    signal: jobSignal(config),
  };
}

/** Jobs have deadlines of their own. As in the original, the window is checked only until the first node is in progress. */
function policyOf(plan: CattlePlan, policy: RolloutPolicy, { job }: CattleConfig): RolloutPolicy {
  const { spec, status } = plan;
  const windows = spec?.window && !status?.applying ? windowsOf(spec.window) : undefined;
  const planWindows = windows === undefined || typeof windows === 'string' ? {} : { planWindows: windows };
  return withDrainOf(plan, { ...policy, ...WITHOUT_DEADLINES, ...planWindows }, job);
}

function isRelevantJobChange(before: KubeObject, after: KubeObject): boolean {
  const conditions = ({ status }: Job): unknown => [status?.startTime, status?.active, status?.conditions];
  return before.metadata.uid !== after.metadata.uid || !sameJson(conditions(before), conditions(after));
}

function isRelevantSecretChange(before: Secret, after: Secret): boolean {
  return before.type !== after.type || !sameJson(before.data, after.data);
}
