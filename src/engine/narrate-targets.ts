/** Owns the story of each node: what is told on its own object when its target begins, is done, fails or is stopped. */
import { formatDuration } from '../util/duration.ts';
import { factsOf } from './gate-input.ts';
import { isLarge } from './ledgers.ts';
import type { Campaign, Errand, Signalling, Snapshot, Stage, Target } from './model.ts';
import type { Announcement } from './narrate.ts';
import type { CampaignPolicy } from './policy/campaign-policy.ts';
import { progressOf } from './progress.ts';
import { because, type Reason } from './reasons.ts';

/** What is told on the object that stands for the target. */
export interface TargetAnnouncement extends Announcement {
  readonly stage: Stage;
  readonly target: Target;
}

/** What is told on a Node, named. */
export interface ClearingAnnouncement extends Announcement {
  readonly node: string;
}

/** Of what is recorded now and was not before: `snapshot` is what the record was decided on. */
export function narrateTargets(
  snapshot: Snapshot,
  after: Campaign,
  policy: CampaignPolicy,
  now: number,
): TargetAnnouncement[] {
  const before = new Map(snapshot.campaign.stages.flatMap(({ targets }) => targets.map((it) => [it.key, it.state])));
  return after.stages.flatMap((stage) =>
    stage.targets
      .filter(({ key, state }) => before.get(key) !== state)
      .flatMap((target) => ending(snapshot, stage, target, policy, now) ?? []),
  );
}

function ending(
  snapshot: Snapshot,
  stage: Stage,
  target: Target,
  policy: CampaignPolicy,
  now: number,
): TargetAnnouncement | undefined {
  if (target.state === 'done') {
    return isQuiet(snapshot.campaign)
      ? undefined
      : { type: 'Normal', reason: doneReason(snapshot, stage, target), stage, target };
  }
  if (target.state !== 'failed') return undefined;
  const recorded = snapshot.campaign.stages.flatMap(({ targets }) => targets).find(({ key }) => key === target.key);
  const { reason } = progressOf(snapshot, stage, recorded ?? target, policy, now);
  return { type: 'Warning', reason, stage, target };
}

function doneReason(snapshot: Snapshot, { version }: Stage, target: Target): Reason {
  const { observation } = factsOf(snapshot, target);
  const { from, spent } = observation.kind === 'none' ? {} : (observation.report ?? {});
  const took = Object.values(spent ?? {}).reduce((sum, ms) => sum + ms, 0);
  const before = from === undefined ? '' : ` (before: ${from})`;
  return because('Completed', `is at ${version}${before}${took > 0 ? ` after ${formatDuration(took)}` : ''}`);
}

export function narrateSignals(campaign: Campaign, signals: readonly Signalling[]): TargetAnnouncement[] {
  if (isQuiet(campaign)) return [];
  return signals.map(({ stage, target }) => {
    const message = `told to go to ${stage.version} by ${campaign.source.kind} ${campaign.source.name}`;
    return { type: 'Normal', reason: because('Signalled', message), stage, target };
  });
}

/** Once it is carried out: whoever is stopped, or whose pods are about to go, is told so, however many there are. */
export function narrateErrand(campaign: Campaign, errand: Errand): TargetAnnouncement[] {
  const { kind, name } = campaign.source;
  const { stage, target } = errand;
  if (errand.kind === 'withdraw') return [{ type: 'Warning', reason: errand.reason, stage, target }];
  // Not the cordon: the node's own agent may have set it already.
  if (errand.kind !== 'drain' || isQuiet(campaign)) return [];
  const reason = because('Draining', `is drained for ${kind} ${name}: its pods are being evicted`);
  return [{ type: 'Normal', reason, stage, target }];
}

/** Where the plan is gone the Node alone can tell what becomes of it. A taint is not worth a word. */
export function narrateClearing({ reason }: Campaign, errand: Errand): ClearingAnnouncement[] {
  const { node } = errand;
  if (node === undefined || !reason) return [];
  if (errand.kind === 'withdraw') return [{ type: 'Warning', reason, node }];
  const lifts = (errand.kind === 'tidy' && errand.cordon) || errand.kind === 'go-on';
  if (!lifts) return [];
  return [{ type: 'Normal', reason: because(reason.code, `is uncordoned: ${reason.message}`), node }];
}

/** Of very many nodes only what goes wrong is told: an event for every step would be more than a server minds. */
const isQuiet = isLarge;
