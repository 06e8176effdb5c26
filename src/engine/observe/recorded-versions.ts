/** Owns what a plan has brought its targets to so far, as recorded: their objects tell of it a moment later. */
import { onceForEach } from '../../util/memo.ts';
import type { Waiting } from '../gates/types.ts';
import type { Role, Stage } from '../model/recorded.ts';
import { isSettled } from '../model/stages.ts';

export interface Brought {
  readonly version: string;
  /** RFC 3339: when that was recorded. */
  readonly since: string;
}

/** Milliseconds that an object may take to tell what its host runs, before that is worth a word. */
const MOMENT_MS = 10_000;

/** By the last of these stages that changed what it runs; undefined where none did. */
export function broughtTo(stages: readonly Stage[], role: Role, name: string): Brought | undefined {
  for (const stage of stages.toReversed()) {
    const since = stage.role === role && stage.keepsVersion !== true ? doneIn(stage).get(name) : undefined;
    if (since !== undefined) return { version: stage.version, since };
  }
  return undefined;
}

/** True where one of these stages ended without it: that it is behind is no fault of the plan. */
export function isLeftBehind(stages: readonly Stage[], role: Role, name: string): boolean {
  return stages.some((stage) => stage.role === role && leftIn(stage).has(name));
}

/** What makes a wait for the object a passing one, for as long as that is nothing strange. */
export function momentAfter({ since }: Pick<Brought, 'since'>, now: number): Pick<Waiting, 'isPassing' | 'recheckMs'> {
  const spent = now - Date.parse(since);
  return spent >= 0 && spent < MOMENT_MS ? { isPassing: true, recheckMs: MOMENT_MS - spent } : {};
}

/** Each target of a later stage may ask, here and below. */
const doneIn = onceForEach(
  ({ targets }: Stage) =>
    new Map(targets.filter(({ state }) => state === 'done').map(({ name, since }) => [name, since])),
);
const leftIn = onceForEach(
  ({ targets }: Stage) =>
    new Set(targets.filter((target) => isSettled(target) && target.state !== 'done').map(({ name }) => name)),
);
