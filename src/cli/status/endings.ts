/** Says what ends each wait, as the rest of a sentence that begins with "when", and what a person can do about it. */
import type { Wait } from '../../engine/model/decided.ts';
import type { ReasonCode } from '../../engine/model/reasons.ts';
import type { PlanView } from './view.ts';

type Ending = (plan: PlanView, wait: Wait) => string;

const says =
  (text: string): Ending =>
  () =>
    text;
const at =
  (text: string): Ending =>
  (_plan, { until }) =>
    until === undefined ? text : `${text}, at ${until}`;
const policyHas =
  (change: string, patch?: object): Ending =>
  ({ policy = 'NAME' }) => {
    const command = `kubectl patch upgradepolicy ${policy} --type=merge -p '${JSON.stringify({ spec: patch })}'`;
    return `UpgradePolicy ${policy} ${change}${patch === undefined ? '' : ` (${command})`}`;
  };

const ENDINGS: Partial<Record<ReasonCode, Ending>> = {
  InFlight: says('the node reports that it is done, or that it failed'),
  Intended: says('the signal is written'),
  Signalled: says('the node answers its signal; where it does not, see that its agent runs'),
  NoFreeSlot: says('a node in progress is done'),
  EarlierStage: says('the earlier stage is done'),
  FinishingInFlight: says('the nodes in progress have ended; the plan ends then'),
  ControlPlaneNotReady: says('every API server answers that it is ready'),
  ForeignWork: says('those nodes have ended, or have not been heard of for long enough'),
  NodeNotReady: says('the node is Ready'),
  Draining: (_plan, { target }) =>
    `the pods are gone (kubectl get pods -A --field-selector spec.nodeName=${target} shows them)`,
  DrainBlocked: says('the budget lets its pods go: run more replicas of them, or change it'),
  DrainRefused: says('those pods are gone, or spec.drain of the policy lets them be evicted'),
  RecordUnread: says('the record of the plan can be read again'),
  Aborted: says('the nodes in progress have ended; the plan ends then'),
  Paused: (plan, wait) =>
    plan.paused === 'policy'
      ? policyHas('is not paused any more', { paused: false })(plan, wait)
      : '`refit resume` is given',
  WindowClosed: at('the window opens'),
  WindowTooShort: at('a window opens that is long enough'),
  Blackout: at('the blackout is over'),
  TooManyUnavailable: says('one of those nodes is back, or maxUnavailable of the policy is raised'),
  PolicyUnreadable: policyHas('is corrected'),
  Unverified: says('the plan has what the policy asks of downloads, or the policy asks for less'),
  SkippedMinor: says('the node reports the version of the earlier command'),
  Downgrade: says('the node reports the version of the earlier command'),
  KubeletAhead: says('those API servers report a version that is new enough, or the plan is corrected'),
  InvalidPlan: says('the plan is corrected'),
};

export function endingOf(plan: PlanView, wait: Wait): string | undefined {
  return ENDINGS[wait.reason.code]?.(plan, wait);
}
