/**
 * Names the target that a sentence is about, and finds the name again. Some plans record a reason only as a sentence, so
 * this name is the only connection between the reason of a plan and its target.
 */
import type { Reason } from '../model/reasons.ts';

/** Returns the reason as the reason of a whole rollout: its message begins with the name of the target that it is about. */
export function reasonAbout(name: string, reason: Reason): Reason {
  const isNamed = saidAbout(name, reason.message) !== undefined;
  return isNamed ? reason : { ...reason, message: `${name}: ${reason.message}` };
}

/**
 * Returns what the sentence says about the target, without the name of the target; undefined if the sentence does not
 * begin with this name.
 */
export function saidAbout(name: string, sentence: string): string | undefined {
  const begin = [`${name}: `, `${name} `, `node ${name} `].find((each) =>
    sentence.startsWith(each),
  );
  return begin === undefined ? undefined : sentence.slice(begin.length);
}

/** Returns the reason in words about another target; the same reason if it does not begin with the name `from`. */
export function retold(reason: Reason, from: string, to: string): Reason {
  const { message } = reason;
  const begin = `${from} `;
  return message.startsWith(begin)
    ? { ...reason, message: `${to} ${message.slice(begin.length)}` }
    : reason;
}

/** Returns true if the sentence has the name of the target as a whole word: `w1` is not a part of `w10` or `w1.example`. */
export function isNamedIn(name: string, sentence: string): boolean {
  const at = sentence.split(name);
  return at.slice(1).some((after, index) => {
    const before = at[index] ?? '';
    return !/[\w.-]$/.test(before) && !/^(?:[\w-]|\.\w)/.test(after);
  });
}

/**
 * Returns true if the sentence says only why this target failed, so that an output which shows the failure of the
 * target need not show the sentence, too. A recorded sentence may have been cut at its end.
 */
export function tellsOnly(name: string, failure: string, sentence: string): boolean {
  const said = saidAbout(name, sentence);
  return said !== undefined && failure.startsWith(said);
}

/**
 * Returns true if the sentence is about this target and contains why it failed, so that a list of failures need not
 * repeat it.
 */
export function tellsFailure(name: string, failure: string, sentence: string): boolean {
  return saidAbout(name, sentence) !== undefined && sentence.includes(failure);
}

/** Returns true if the message of the reason contains the whole sentence, so that an output need not show it twice. */
export function isPartOf(sentence: string, { message }: Reason): boolean {
  return message.includes(sentence);
}
