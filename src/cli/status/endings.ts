/** Owns what ends each wait, in clauses that begin with "when"; what a person can do about it stands in the same clause. */
import type { Wait } from '../../engine/model/decided.ts';
import type { ReasonCode } from '../../engine/model/reasons.ts';
import type { PlanView } from './view.ts';

type Ending = (plan: PlanView, wait: Wait) => string;

const says =
  (text: string): Ending =>
  () =>
    text;
/** The moment is known. */
const at =
  (text: string): Ending =>
  (_plan, { until }) =>
    until === undefined ? text : `${text}, at ${until}`;
/** Something else would have to be written in the policy. */
const policyHas =
  (change: string, patch?: object): Ending =>
  ({ policy = 'NAME' }) => {
    const command = `kubectl patch upgradepolicy ${policy} --type=merge -p '${JSON.stringify({ spec: patch })}'`;
    return `UpgradePolicy ${policy} ${change}${patch === undefined ? '' : ` (${command})`}`;
  };

/** Codes that no wait ever has are absent. */
const ENDINGS: Partial<Record<ReasonCode, Ending>> = {
  InFlight: says('the node reports that it is done, or that it failed'),
  Intended: says('the signal is written'),
  Signalled: says('the node answers its signal; where it does not, see that its agent runs'),
  NoFreeSlot: says('one of those under way is done'),
  EarlierStage: says('the earlier stage is done'),
  FinishingInFlight: says('those under way come to their end, and the plan with them'),
  ControlPlaneNotReady: says('every API server answers that it is ready'),
  ForeignWork: says('those nodes come to their end, or give no sign of life for long enough'),
  NodeNotReady: says('the node is Ready'),
  Draining: (_plan, { target }) =>
    `the pods are gone (kubectl get pods -A --field-selector spec.nodeName=${target} shows them)`,
  DrainBlocked: says('the budget lets its pods go: run more replicas of them, or change it'),
  DrainRefused: says('those pods are gone, or spec.drain of the policy lets them be evicted'),
  RecordUnread: says('what is recorded of the plan can be read again'),
  Aborted: says('those under way come to their end, and the plan with them'),
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
  SkippedMinor: says('the node tells the version to which the earlier command has brought it'),
  Downgrade: says('the node tells the version to which the earlier command has brought it'),
  KubeletAhead: says('the objects of those API servers tell a version that is new enough, or the plan is put right'),
  InvalidPlan: says('the plan is put right'),
};

export function endingOf(plan: PlanView, wait: Wait): string | undefined {
  return ENDINGS[wait.reason.code]?.(plan, wait);
}
