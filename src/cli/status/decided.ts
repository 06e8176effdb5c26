/** Says in sentences what people decided about the present run of a plan. */
import type { DecidedReading } from '../../engine/explain/decided-reading.ts';

/**
 * Returns one sentence for each approved wave and each accepted check of the policy. Only an admission policy ensures
 * that the user name in an entry is true. This command cannot see whether such a policy exists, so the sentence says
 * that the name comes from the entry.
 */
export function decidedSentences({ approved, accepted }: DecidedReading): string[] {
  return [
    ...approved.map((each) => `wave ${each.wave} is approved, ${saysWho(each)}`),
    ...accepted.map((each) => `the health check ${each.check} may fail, ${saysWho(each)}`),
  ];
}

interface Said {
  readonly by: string;
  readonly at?: string;
  readonly reason?: string;
}

function saysWho({ by, at, reason }: Said): string {
  const when = at === undefined ? '' : ` at ${at}`;
  return `says ${by}${when}${reason === undefined ? '' : `: ${reason}`}`;
}
