/**
 * Finds the versions to which targets were upgraded according to the record. The objects of the targets show these
 * versions a little later.
 */
import { onceForEach } from '../../util/memo.ts';
import { factsOf, versionAsked, type Waiting, type WithFacts } from '../gates/types.ts';
import { isSettled, type Role, type Stage } from '../model/rollout.ts';

/** Milliseconds that an object may take to show its new version. A longer wait for the version is reported. */
const MOMENT_MS = 10_000;

/**
 * Finds the last of these stages that upgraded the target, and returns its version and the time of the upgrade;
 * undefined if no stage upgraded the target.
 */
export function recordedUpgrade(
  snapshot: WithFacts,
  stages: readonly Stage[],
  role: Role,
  name: string,
) {
  for (const stage of stages.toReversed()) {
    const target =
      stage.role === role && stage.keepsVersion !== true ? doneIn(stage).get(name) : undefined;
    if (target !== undefined)
      return { version: versionAsked(factsOf(snapshot, target), stage), since: target.since };
  }
  return undefined;
}

/** Returns true if the target failed in one of these stages. Its old version then does not mean that the plan is wrong. */
export function failedInEarlierStage(stages: readonly Stage[], role: Role, name: string): boolean {
  return stages.some((stage) => stage.role === role && leftIn(stage).has(name));
}

/**
 * Returns the fields that mark a wait as short, while the object may still need a moment to show its version. Returns no fields
 * afterwards. `now` is in milliseconds.
 */
export function momentAfter(since: string, now: number): Partial<Waiting> {
  const spent = now - Date.parse(since);
  return spent >= 0 && spent < MOMENT_MS ? { isPassing: true, recheckMs: MOMENT_MS - spent } : {};
}

/** The done targets are indexed once per stage, because each target of a later stage needs them. */
const doneIn = onceForEach(
  ({ targets }: Stage) =>
    new Map(targets.filter(({ state }) => state === 'done').map((target) => [target.name, target])),
);
const leftIn = onceForEach(
  ({ targets }: Stage) =>
    new Set(
      targets
        .filter((target) => isSettled(target) && target.state !== 'done')
        .map(({ name }) => name),
    ),
);
