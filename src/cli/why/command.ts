/** Owns `refit why`: what `refit status` sees, told as one paragraph for each plan, or for one node. */
import { EXIT } from '../../util/errors.ts';
import type { ConnectionFlags } from '../options.ts';
import { wrapped } from '../phrases.ts';
import { inSession, lookOnce, type SessionParts } from '../status/session.ts';
import type { StatusView } from '../status/view.ts';
import { explainNode } from './node.ts';
import { explainPlan } from './plan.ts';

/** Resolves with 0: a plan that failed is told, and not a failure of this command. */
export async function showWhy(node: string | undefined, flags: ConnectionFlags, parts: SessionParts): Promise<number> {
  const { clock, output, abort } = parts;
  return await inSession(flags, parts, 'refit-why', async (session) => {
    const now = clock.now();
    const paragraphs = paragraphsOf(await lookOnce(session, now, abort), node, now);
    const { columns } = output.size();
    output.write(`${paragraphs.map((text) => wrapped(text, columns).join('\n')).join('\n\n')}\n`);
    return EXIT.ok;
  });
}

/** `now` in milliseconds since the epoch. */
export function paragraphsOf(status: StatusView, node: string | undefined, now: number): string[] {
  const { plans } = status;
  if (plans.length === 0) return ['There is no plan.'];
  const found =
    node === undefined
      ? plans.map((plan) => explainPlan(status, plan, now))
      : plans.flatMap((plan) => explainNode(status, plan, node, now));
  return found.length > 0 ? found.map((sentences) => sentences.join(' ')) : [`No plan has ${node} among its targets.`];
}
