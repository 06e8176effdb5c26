/** Owns the look at all plans at one moment, through the very decision that the controller takes. */
import { decide } from '../../engine/decide.ts';
import type { Dialect, Endpoint } from '../../engine/dialect.ts';
import { gather } from '../../engine/gather.ts';
import { DEFAULT_POLICY, type EndpointHealth } from '../../engine/model.ts';
import type { Loaded } from './load.ts';
import { type PlanView, viewOf } from './view.ts';

export type AskControlPlane = (endpoints: readonly Endpoint[]) => Promise<readonly EndpointHealth[]>;

/** The API servers are asked only where a decision hangs on them. Nothing is written. */
export async function observe(
  dialect: Dialect,
  loaded: Loaded,
  ask: AskControlPlane,
  now: number,
): Promise<PlanView[]> {
  const views = loaded.plans().map(async (plan) => {
    const snapshot = gather(dialect, plan, loaded.world, now);
    const decision = decide(snapshot, DEFAULT_POLICY, now);
    if (!decision.wantsHealth) return viewOf(dialect, snapshot, decision);
    const informed = { ...snapshot, controlPlane: await ask(dialect.endpoints(loaded.world)) };
    return viewOf(dialect, informed, decide(informed, DEFAULT_POLICY, now));
  });
  return (await Promise.all(views)).toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
