/** The versions that a plan has upgraded its targets to, from the record: their objects show them a little later. */
import { onceForEach } from '../../util/memo.ts';
import type { Waiting } from '../gates/types.ts';
import { isSettled, type Role, type Stage } from '../model/rollout.ts';

/** Milliseconds that an object may take to show its new version before the wait is reported. */
const MOMENT_MS = 10_000;

/** The version from the last of these stages that upgraded the target, if any. */
export function recordedUpgrade(stages: readonly Stage[], role: Role, name: string) {
  for (const stage of stages.toReversed()) {
    const since =
      stage.role === role && stage.keepsVersion !== true ? doneIn(stage).get(name) : undefined;
    if (since !== undefined) return { version: stage.version, since };
  }
  return undefined;
}

/** True if the target failed in one of these stages: its old version is no fault of the plan. */
export function failedInEarlierStage(stages: readonly Stage[], role: Role, name: string): boolean {
  return stages.some((stage) => stage.role === role && leftIn(stage).has(name));
}

/** Marks a wait for the object as passing while it may still be that short. */
export function momentAfter(since: string, now: number): Partial<Waiting> {
  const spent = now - Date.parse(since);
  return spent >= 0 && spent < MOMENT_MS ? { isPassing: true, recheckMs: MOMENT_MS - spent } : {};
}

/** Computed once per stage: each target of a later stage needs them. */
const doneIn = onceForEach(
  ({ targets }: Stage) =>
    new Map(
      targets.filter(({ state }) => state === 'done').map(({ name, since }) => [name, since]),
    ),
);
const leftIn = onceForEach(
  ({ targets }: Stage) =>
    new Set(
      targets
        .filter((target) => isSettled(target) && target.state !== 'done')
        .map(({ name }) => name),
    ),
);
