/** Owns `refit status`: one look, or a watch that ends when every plan has ended. */
import { EXIT } from '../../util/errors.ts';
import type { ConnectionFlags } from '../options.ts';
import { type Form, render } from './render.ts';
import { reporter } from './reporter.ts';
import { inSession, lookOnce, type SessionParts } from './session.ts';
import type { PlanView } from './view.ts';
import { type WatchParts, watchPlans } from './watch.ts';

export interface StatusFlags extends ConnectionFlags {
  readonly output: Form;
  readonly watch?: boolean;
}

export interface StatusParts extends SessionParts {
  /** Hears of every look that a watch takes. */
  readonly onLook?: ((plans: readonly PlanView[]) => void) | undefined;
}

/** Resolves with the exit code: of one look 0; of a watch 0 where all plans are done, 1 where not, 130 interrupted. */
export async function showStatus(flags: StatusFlags, parts: StatusParts): Promise<number> {
  const { clock, output, abort } = parts;
  return await inSession(flags, parts, 'refit-status', async (session) => {
    if (flags.watch) {
      const dialects = session.loaded.map(({ dialect }) => dialect);
      return await watch(flags, parts, { ...session, dialects, clock, abort });
    }
    const now = clock.now();
    output.write(await render(await lookOnce(session, now, abort), flags.output, now, output));
    return EXIT.ok;
  });
}

async function watch(flags: StatusFlags, { output, clock, onLook }: StatusParts, parts: WatchParts): Promise<number> {
  const tell = reporter(output, flags.output);
  let last: readonly PlanView[] = [];
  try {
    for await (const view of watchPlans(parts)) {
      last = view.plans;
      onLook?.(last);
      await tell(view, clock.now());
    }
  } catch (error) {
    if (parts.abort.aborted) return EXIT.interrupted;
    throw error;
  }
  return last.every(({ phase }) => phase === 'done') ? EXIT.ok : EXIT.failed;
}
