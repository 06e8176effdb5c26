/** Owns the words in which a cordon names whose it is: written and read by engine and agent alike. */

export interface Owner {
  /** Uid of the plan; of a node that cordons itself, which knows no more, the plan's own name for this run: any text. */
  readonly plan: string;
  /** Of another attempt nothing is known. */
  readonly attempt: string;
  /** Kind of the plan: only who knows the plans of a kind can tell that one is gone. Absent where a node cordons itself. */
  readonly kind?: string | undefined;
}

/** How every kind in Kubernetes looks, and no time. */
const KIND = /^[A-Z][A-Za-z0-9]*$/;

export function writeOwner({ plan, attempt, kind }: Owner): string {
  return [plan, attempt, ...(kind === undefined ? [] : [kind])].join('/');
}

/** From its end: a plan's own name may hold slashes, what follows it does not. */
export function readOwner(text: string): Owner | undefined {
  const words = text.split('/');
  const kind = words.length > 2 && KIND.test(words.at(-1) ?? '') ? words.pop() : undefined;
  const attempt = words.pop() ?? '';
  const plan = words.join('/');
  return plan === '' ? undefined : { plan, attempt, kind };
}
