/** Owns `refit status -w`: told anew after every change, in place on a terminal, line by line into a pipe. */
import type { Dialect } from '../../engine/dialect.ts';
import type { KubeClient } from '../../kube/client.ts';
import { type Clock, sleep } from '../../util/clock.ts';
import { EXIT } from '../../util/errors.ts';
import { type Output, Screen } from '../output.ts';
import { changesBetween } from './changes.ts';
import type { Form } from './forms.ts';
import { follow } from './load.ts';
import { type AskControlPlane, observe } from './observe.ts';
import { render, renderLines } from './render.ts';
import type { PlanView } from './view.ts';

export interface WatchParts {
  readonly dialects: readonly Dialect[];
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly output: Output;
  readonly signal: AbortSignal;
  readonly form: Form;
  readonly ask: AskControlPlane;
}

/** Ages on the screen grow although nothing changes; a pipe hears of changes only. */
const REDRAW_MS = 1000;

/** Resolves when every plan has ended (0 all done, 1 not), or when the signal aborts (130). */
export async function watchStatus(parts: WatchParts): Promise<number> {
  const stop = new AbortController();
  const ended = AbortSignal.any([parts.signal, stop.signal]);
  const changes = new Changes();
  try {
    const followed = await Promise.all(
      parts.dialects.map(async (dialect) => ({
        dialect,
        ...(await follow(parts.client, dialect, ended, () => changes.note())),
      })),
    );
    const tell = teller(parts);
    for (;;) {
      const now = parts.clock.now();
      const views = (
        await Promise.all(followed.map(async (each) => await observe(each.dialect, each, parts.ask, now)))
      ).flat();
      await tell(views, now);
      if (views.length > 0 && views.every(isOver))
        return views.every(({ phase }) => phase === 'done') ? EXIT.ok : EXIT.failed;
      await changes.next(parts.clock, REDRAW_MS, ended);
    }
  } catch (error) {
    if (parts.signal.aborted) return EXIT.interrupted;
    throw error;
  } finally {
    stop.abort();
  }
}

function isOver({ phase }: PlanView): boolean {
  return phase !== 'new' && phase !== 'running';
}

type Tell = (views: readonly PlanView[], now: number) => Promise<void>;

function teller({ output, form }: WatchParts): Tell {
  if (form === 'json' || form === 'yaml') return tellDocuments(output, form);
  if (!output.isTerminal) return tellLines(output);
  const screen = new Screen(output);
  return async (views, now) => await Promise.resolve(screen.draw(renderLines(views, form, now, true)));
}

/** One JSON object a line, or one YAML document, whenever it differs from the last one. */
function tellDocuments(output: Output, form: 'json' | 'yaml'): Tell {
  let last = '';
  return async (views, now) => {
    const text =
      form === 'json' ? `${JSON.stringify({ plans: views })}\n` : `---\n${await render(views, form, now, false)}`;
    if (text !== last) output.write(text);
    last = text;
  };
}

function tellLines(output: Output): Tell {
  let before = new Map<string, PlanView>();
  return async (views, now) => {
    const lines = views.flatMap((view) => changesBetween(before.get(view.name), view, now));
    before = new Map(views.map((view) => [view.name, view]));
    await Promise.resolve(output.write(lines.map((line) => `${line}\n`).join('')));
  };
}

/** Wakes whoever waits for a change; one that came while nobody waited is not lost. */
class Changes {
  #noted = false;
  #wake: (() => void) | undefined;

  note(): void {
    this.#noted = true;
    this.#wake?.();
  }

  /** Resolves at the next change or after `ms`; rejects where the signal aborts. */
  async next(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#noted) {
      const changed = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      await Promise.race([changed, sleep(clock, ms, signal)]);
    }
    signal.throwIfAborted();
    this.#noted = false;
  }
}
