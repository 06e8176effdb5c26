/**
 * Sends the spans of plans when their nodes and runs end. It remembers the sent spans only for one term of leadership. The next leader
 * makes the same spans with the same ids, and sends the spans of an unfinished run again.
 */
import { keyOf } from '../../kube/resources.ts';
import type { TraceExporter } from '../../traces/exporter.ts';
import type { Dialect } from '../contract/dialect.ts';
import { placeOf } from '../contract/node-rollout-place.ts';
import { isRemarkable } from '../explain/remarkable-waits.ts';
import type { Wait } from '../model/decision.ts';
import { runOf } from '../model/decisions-of-people.ts';
import { planReference } from '../model/plan-reference.ts';
import { isFinal, type Rollout } from '../model/rollout.ts';
import {
  type EndedTarget,
  endedTargets,
  hasEndedBefore,
  nodeSpans,
  rolloutSpan,
  type SeenWait,
} from './spans.ts';
import type { Turn } from './turn.ts';

export interface Tracer {
  /**
   * Sends the spans of the nodes that have ended in `rollout`, and the span of the run if the run has ended. Returns
   * the milliseconds after which the tracer can try to send the remaining spans; undefined if no spans remain.
   */
  follow(turn: Turn, rollout: Rollout, waits: readonly Wait[]): number | undefined;
  /** Forgets the plan with this key. */
  forget(key: string): void;
  /** Forgets which spans were sent, because another leader may have led since the last term of this process. */
  begin(): void;
}

/**
 * The time after the end of a run, in milliseconds, in which a new leader sends the trace of this run again. The
 * previous leader may have stopped before it sent the trace.
 */
export const RESEND_MS = 60 * 60_000;
/** Milliseconds until the tracer asks again whether the queue of the exporter has room. */
const AGAIN_MS = 5_000;
/** The most waits that the tracer keeps for one run. */
const MOST_WAITS = 100;
/** The most spans of one node: the span of the node, and the spans of its steps. */
const MOST_OF_NODE = 21;

/** What the tracer remembers of one run: the spans that it has sent, and waits that no span contains yet. */
interface Run {
  readonly name: string;
  readonly sent: Set<string>;
  readonly waits: Map<string, SeenWait>;
  isOver: boolean;
}

export function createTracer(
  dialect: Dialect,
  exporter: Pick<TraceExporter, 'room' | 'add'>,
): Tracer {
  const runs = new Map<string, Run>();

  const runFor = ({ plan, assessment }: Turn, rollout: Rollout): Run => {
    const key = keyOf(plan);
    const name = runOf(rollout);
    const known = runs.get(key);
    // If a person has ordered another attempt after the end of the run, the run is not over any more.
    if (known?.name === name) {
      if (!isFinal(rollout)) known.isOver = false;
      return known;
    }
    const isOver = hasEndedBefore(assessment, rollout, RESEND_MS);
    const run = { name, sent: new Set<string>(), waits: new Map<string, SeenWait>(), isOver };
    runs.set(key, run);
    return run;
  };

  return {
    follow(turn, rollout, waits) {
      if (rollout.phase === 'new' || rollout.phase === 'invalid') return undefined;
      const { plan, assessment } = turn;
      const run = runFor(turn, rollout);
      if (run.isOver) return undefined;
      see(run, waits, assessment.now);
      for (const ended of endedTargets(assessment.snapshot, rollout)) {
        if (run.sent.has(ended.mark)) continue;
        if (exporter.room() < MOST_OF_NODE) return AGAIN_MS;
        run.sent.add(ended.mark);
        exporter.add(nodeSpans(assessment, rollout, ended, taken(run, ended)));
      }
      if (!isFinal(rollout)) return undefined;
      if (exporter.room() === 0) return AGAIN_MS;
      run.isOver = true;
      const subject = placeOf(dialect, plan)?.subject ?? plan.metadata;
      const title = planReference({ dialect: dialect.name, ...subject });
      const whole = { title, dialect: dialect.name };
      exporter.add([rolloutSpan(assessment, rollout, whole, [...run.waits.values()])]);
      run.waits.clear();
      return undefined;
    },
    forget: (key) => void runs.delete(key),
    begin: () => runs.clear(),
  };
}

/** Remembers the waits until a span contains them. Waits for only a slot, a stage or a node in progress are ignored. */
function see(run: Run, waits: readonly Wait[], now: number): void {
  for (const wait of waits.filter(isRemarkable)) {
    const key = [wait.target, wait.reason.code, wait.since].join('\0');
    if (run.waits.size < MOST_WAITS || run.waits.has(key)) run.waits.set(key, { wait, until: now });
  }
}

/**
 * Removes the waits of this attempt from the waits of the run, and returns them. Waits that began before the attempt
 * are not removed.
 */
function taken(run: Run, { target, observation }: EndedTarget): SeenWait[] {
  const from = Date.parse(observation.attempt);
  const own = [...run.waits].filter(
    ([, { wait }]) => wait.target === target.name && Date.parse(wait.since) >= from,
  );
  for (const [key] of own) run.waits.delete(key);
  return own.map(([, seen]) => seen);
}
