/** Remembers which targets in progress stall or rest, and since when: each is reported once. */
import type { Evaluations } from '../decide/evaluate-target.ts';
import { activeStage } from '../model/recorded.ts';
import type { TargetEvent } from './events.ts';

interface Held {
  readonly stalled: readonly TargetEvent[];
  readonly rests: readonly TargetEvent[];
  /** All that stalls or is refused: since when (ms), by message. */
  readonly stalls: ReadonlyMap<string, number>;
}

export class HeldTargets {
  readonly #reported = new Map<string, ReadonlyMap<string, number>>();

  at(key: string, evaluations: Evaluations): Held {
    const before = this.#reported.get(key) ?? new Map<string, number>();
    const held = heldTargets(evaluations);
    const since = (event: TargetEvent): number => before.get(wordsOf(event)) ?? evaluations.now;
    this.#reported.set(key, new Map(held.map((event) => [wordsOf(event), since(event)])));
    const fresh = held.filter((event) => !before.has(wordsOf(event)));
    const stalling = held.filter(({ reason }) => reason.code !== 'Resting');
    return {
      stalled: fresh.filter(({ reason }) => reason.code === 'Stalled'),
      rests: fresh.filter(({ reason }) => reason.code === 'Resting'),
      stalls: new Map(stalling.map((event) => [event.reason.message, since(event)])),
    };
  }

  forget(key: string): void {
    this.#reported.delete(key);
  }
}

/** Without numbers: a scheduler counts other nodes each time. */
function wordsOf({ target, reason }: TargetEvent): string {
  return `${target.key} ${reason.message.replaceAll(/\b\d+\b/g, '')}`;
}

function heldTargets(evaluations: Evaluations): TargetEvent[] {
  const stage = activeStage(evaluations.snapshot.rollout);
  if (!stage) return [];
  const inProgress = stage.targets.filter(({ state }) => state === 'intended');
  return inProgress.flatMap((target): TargetEvent[] => {
    const { reason, gate } = evaluations.of(stage, target);
    // A refused write has its Event already.
    if (reason.code === 'Stalled' || gate === 'write') return [{ type: 'Warning', reason, stage, target }];
    return reason.code === 'Resting' ? [{ type: 'Normal', reason, stage, target }] : [];
  });
}
