/** Says which fields of an UpgradePolicy have an effect on Plans of Rancher, and what counts instead of the others. */
import { inPart, noEffect, type PolicyEffects, WORKS } from '../../engine/policy/policy-effects.ts';

const DEADLINE_OF_JOB = noEffect(
  'the deadline of the Job counts (`jobActiveDeadlineSecs` of the Plan, or SYSTEM_UPGRADE_JOB_ACTIVE_DEADLINE_SECONDS)',
);
const DRAIN_OF_PLAN = noEffect('`spec.drain` and `spec.cordon` of the Plan count');
const NO_AGENT = noEffect('its Jobs need no agent on the node');
const IMAGE = noEffect('its nodes download no file of the plan: the kubelet pulls the image');

export const policyEffects: PolicyEffects = {
  plans: WORKS,
  paused: WORKS,
  failureBudget: WORKS,
  maxConsecutiveFailures: WORKS,
  onFailure: inPart(
    'a Plan of Rancher does not end with a failure, so `Stop`, `Pause` and `RollBack` all only keep further nodes from starting; run refit rollback to go back',
  ),
  retry: noEffect('the backoffLimit of the Job counts (SYSTEM_UPGRADE_JOB_BACKOFF_LIMIT)'),
  waves: WORKS,
  'waves[].settle': WORKS,
  'waves[].failureBudget': noEffect(
    'failed nodes keep their slots, so `spec.failureBudget` counts in every wave',
  ),
  'waves[].approval': WORKS,
  spread: WORKS,
  perDomain: WORKS,
  maxBlockedNodes: noEffect('a Plan of Rancher leaves no node out'),
  maxUnavailable: WORKS,
  order: WORKS,
  'deadlines.answer': DEADLINE_OF_JOB,
  'deadlines.download': DEADLINE_OF_JOB,
  'deadlines.drain': noEffect(
    '`spec.drain.timeout` of the Plan counts, or else the deadline of its Job',
  ),
  'deadlines.apply': DEADLINE_OF_JOB,
  'deadlines.restart': DEADLINE_OF_JOB,
  'deadlines.ready': WORKS,
  'deadlines.target': DEADLINE_OF_JOB,
  'drain.enabled': DRAIN_OF_PLAN,
  'drain.deleteEmptyDirData': DRAIN_OF_PLAN,
  'drain.force': DRAIN_OF_PLAN,
  'drain.gracePeriodSeconds': DRAIN_OF_PLAN,
  'drain.onDeadline': inPart(
    'it applies only where the leader drains, and `SkipNode` acts as `Skip`',
  ),
  'drain.zeroDisruptionBudgets': WORKS,
  'drain.softTaint': noEffect('Refit sets no soft taint on the nodes of a Plan of Rancher'),
  'drain.uncordon': noEffect('only the cordon of a Job of the Plan, or of the leader, is removed'),
  'drain.startWith': WORKS,
  'drain.order': WORKS,
  'drain.pods': WORKS,
  'drain.loadBalancers': WORKS,
  'drain.volumes': WORKS,
  'drain.evictionRequests': WORKS,
  'drain.waitForJobs': WORKS,
  health: WORKS,
  hooks: WORKS,
  notify: WORKS,
  silences: WORKS,
  soak: NO_AGENT,
  keepPrevious: NO_AGENT,
  etcdSnapshot: NO_AGENT,
  settle: WORKS,
  'versions.allow': WORKS,
  'versions.pin': WORKS,
  'versions.requireReady': WORKS,
  'versions.verify': WORKS,
  virtualNodes: WORKS,
  'payloads.requireSha256': IMAGE,
  'payloads.requireHttps': IMAGE,
  'payloads.requireImageDigest': WORKS,
  'payloads.diskReserveMiB': IMAGE,
  'payloads.problemTimeout': noEffect(
    'a node whose image of K3s or RKE2 cannot be pulled waits until it can, and other nodes start',
  ),
  prefetch: inPart(
    'only the images that install K3s and RKE2 are pulled before the turn of a node',
  ),
  'agents.require': NO_AGENT,
  controllersNotReady: inPart(
    'a Plan of K3s or RKE2 always waits until every API server is ready, so `End` acts as `Wait`; other Plans ask no API server',
  ),
  holds: noEffect('a Plan of Rancher waits for a held node, and does not end without it'),
  goneNodes: noEffect('a Plan of Rancher upgrades the nodes that exist'),
  newNodes: noEffect('a Plan of Rancher upgrades all joining nodes that it selects'),
  coordinate: WORKS,
  nodeConditions: WORKS,
  'edits.afterEnd': noEffect('a Plan of Rancher starts again by itself when its version changes'),
  'edits.whileRunning': noEffect('nodes that start after an edit get what the Plan says then'),
  windows: WORKS,
  blackouts: WORKS,
};
