/** Says which fields of an UpgradePolicy have an effect on Machines of Cluster API, and what counts instead of the others. */
import { inPart, noEffect, type PolicyEffects, WORKS } from '../../engine/policy/policy-effects.ts';

const CHOSEN = noEffect('Cluster API chooses which Machine is updated next');
const ASKED_EACH_TIME = noEffect('Cluster API asks for each update');

const COUNTED_WAVES =
  'Cluster API chooses which Machine comes next, so `count` and `percent` mean the Machines that come first, and a selector must select all Machines of an owner or none; the waves of an owner do not wait for another owner, and the Machines of a control plane are in no wave';
const NO_ROLL_BACK =
  '`RollBack` acts as `Stop`, because the owner of the Machines decides their version; run refit rollback to see what to change';

/** The effects if all Machines of an owner are one plan, which is the default of the extension. */
export const policyEffects: PolicyEffects = {
  plans: WORKS,
  paused: WORKS,
  failureBudget: WORKS,
  maxConsecutiveFailures: WORKS,
  onFailure: inPart(NO_ROLL_BACK),
  retry: inPart(
    'a Machine that missed `deadlines.target` is not tried again, because its agent may be gone; run refit retry then',
  ),
  waves: inPart(COUNTED_WAVES),
  'waves[].settle': WORKS,
  'waves[].failureBudget': WORKS,
  'waves[].approval': WORKS,
  spread: CHOSEN,
  perDomain: WORKS,
  maxBlockedNodes: noEffect('Cluster API waits for each Machine, so none is skipped'),
  maxUnavailable: WORKS,
  order: CHOSEN,
  'deadlines.answer': WORKS,
  'deadlines.download': WORKS,
  'deadlines.drain': WORKS,
  'deadlines.apply': WORKS,
  'deadlines.restart': WORKS,
  'deadlines.ready': WORKS,
  'deadlines.target': WORKS,
  'drain.enabled': WORKS,
  'drain.deleteEmptyDirData': WORKS,
  'drain.force': WORKS,
  'drain.gracePeriodSeconds': WORKS,
  'drain.onDeadline': inPart(
    '`SkipNode` acts as `Skip`, because Cluster API waits for each Machine',
  ),
  'drain.zeroDisruptionBudgets': WORKS,
  'drain.softTaint': WORKS,
  'drain.uncordon': WORKS,
  'drain.startWith': CHOSEN,
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
  soak: WORKS,
  keepPrevious: noEffect('only k0s Plans say when the previous binary is removed'),
  etcdSnapshot: inPart('it applies to Machines with k0s, and not to those with kubeadm'),
  settle: WORKS,
  'versions.allow': noEffect('the setting `allowedVersionRules` of the updater counts'),
  'versions.pin': WORKS,
  'versions.requireReady': noEffect(
    'each Machine has a plan of its own, so nothing happens once before all of them: run `refit ready --cluster` before you change the version',
  ),
  'versions.verify': noEffect('Refit always waits for the version of the kubelet'),
  virtualNodes: WORKS,
  'payloads.requireSha256': WORKS,
  'payloads.requireHttps': WORKS,
  'payloads.requireImageDigest': noEffect(
    'its agents run no image: they download files, so `payloads.requireSha256` counts',
  ),
  'payloads.diskReserveMiB': WORKS,
  'payloads.problemTimeout': WORKS,
  prefetch: CHOSEN,
  'agents.require': WORKS,
  controllersNotReady: WORKS,
  holds: noEffect('Cluster API waits for each Machine, so a held Machine is not left out'),
  goneNodes: noEffect('Cluster API deletes a Machine together with its update'),
  newNodes: noEffect('Cluster API creates new Machines with the new version'),
  coordinate: WORKS,
  nodeConditions: WORKS,
  'edits.afterEnd': ASKED_EACH_TIME,
  'edits.whileRunning': ASKED_EACH_TIME,
  windows: WORKS,
  blackouts: WORKS,
};

const OWN_PLAN = noEffect(
  'each Machine is a plan of its own (`--rollouts machine`), and Cluster API chooses which one is updated next',
);

/** The effects if the extension runs with `--rollouts machine`. */
export const effectsOnMachines: PolicyEffects = {
  ...policyEffects,
  failureBudget: OWN_PLAN,
  maxConsecutiveFailures: OWN_PLAN,
  onFailure: OWN_PLAN,
  waves: inPart(
    'each Machine is a plan of its own (`--rollouts machine`), so `percent` puts every Machine into the first wave, and a wave does not wait for other Machines',
  ),
  'waves[].settle': OWN_PLAN,
  'waves[].failureBudget': OWN_PLAN,
  'waves[].approval': inPart(
    'each Machine is a plan of its own (`--rollouts machine`), so each Machine that is not in the first wave needs an approval',
  ),
  'drain.onDeadline': inPart(
    '`Stop` and `SkipNode` act as `Skip`, because each Machine is a plan of its own (`--rollouts machine`)',
  ),
  settle: OWN_PLAN,
};
