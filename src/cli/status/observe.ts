/** Owns the look at all plans at one moment, through the very decision that the controller takes. */
import { decide } from '../../engine/decide.ts';
import type { Dialect, Endpoint } from '../../engine/dialect.ts';
import { explain } from '../../engine/explain.ts';
import { gather } from '../../engine/gather.ts';
import type { Decision, EndpointHealth, Snapshot } from '../../engine/model.ts';
import { type CampaignPolicy, DEFAULT_POLICY } from '../../engine/policy/campaign-policy.ts';
import type { Loaded } from './load.ts';
import { type PlanView, viewOf } from './view.ts';

export type AskControlPlane = (endpoints: readonly Endpoint[]) => Promise<readonly EndpointHealth[]>;

/** How long a node may take is the controller's to know (--target-deadline): no end is told that may be another's. */
const POLICY: CampaignPolicy = { ...DEFAULT_POLICY, targetDeadlineMs: Number.POSITIVE_INFINITY };

/** The API servers are asked only where a decision hangs on them. Nothing is written. */
export async function observe(
  dialect: Dialect,
  loaded: Loaded,
  ask: AskControlPlane,
  now: number,
): Promise<PlanView[]> {
  const views = loaded.plans().map(async (plan) => {
    const snapshot = sinceCreation(gather(dialect, plan, loaded.world, now, { isOnlyLooking: true }));
    if (!wantsHealth(decide(snapshot, POLICY, now))) return viewAt(dialect, snapshot, now);
    const controlPlane = await ask(dialect.endpoints(loaded.world));
    return viewAt(dialect, { ...snapshot, controlPlane }, now);
  });
  return (await Promise.all(views)).toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** The targets of a plan without status wait since it was created, not since somebody looked. */
function sinceCreation(snapshot: Snapshot): Snapshot {
  const { campaign } = snapshot;
  if (campaign.phase !== 'new') return snapshot;
  const since = campaign.source.created;
  const stages = campaign.stages.map((stage) => ({
    ...stage,
    targets: stage.targets.map((target) => ({ ...target, since })),
  }));
  return { ...snapshot, campaign: { ...campaign, stages } };
}

/** Explains what is recorded, and not what will be: without a controller that never comes. */
function viewAt(dialect: Dialect, snapshot: Snapshot, now: number): PlanView {
  const upcoming = decide(snapshot, POLICY, now).record ?? snapshot.campaign;
  return viewOf(dialect, { snapshot, explanation: explain(snapshot, POLICY, now), upcoming, policy: POLICY });
}

function wantsHealth({ inquiries }: Decision): boolean {
  return inquiries.some(({ kind }) => kind === 'control-plane');
}
