/**
 * Names the target that a sentence is about, and finds the name again. Some plans record a reason only as a sentence, so
 * this name is the only connection between the reason of a plan and its target.
 */
import type { Reason, RolloutReason } from '../model/reasons.ts';
import type { Target } from '../model/rollout.ts';

/** The word that sentences may have before the name of a Node. A Node may have this name, too. */
const NODE = 'node';

/** Returns the reason as the reason of a whole rollout: its message begins with the name of the target that it is about. */
export function reasonAbout(name: string, reason: Reason): RolloutReason {
  const { message } = reason;
  // `node w1 is not Ready` is about w1 even if it is said of a Node with the name `node`, which needs its name in front.
  const isNamed =
    name === NODE
      ? message.startsWith(`${NODE}: `) || message.startsWith(`${NODE} ${NODE} `)
      : saidAbout(name, message) !== undefined;
  return { ...reason, message: isNamed ? message : `${name}: ${message}`, about: [name] };
}

/**
 * Returns the name of the target that the recorded reason of a rollout is about; undefined if it is about none of these
 * targets. If several names fit, the longest beginning counts: `node w1 is not Ready` is about w1, although a target may
 * have the name `node`.
 */
export function readSubject(
  targets: readonly Pick<Target, 'name'>[],
  sentence: string,
): string | undefined {
  let subject: string | undefined;
  let rest = sentence.length + 1;
  const afterNode = sentence.startsWith(`${NODE} `) ? sentence.slice(NODE.length + 1) : undefined;
  for (const { name } of targets) {
    // A rollout may have 15,000 targets, so this quick test comes first.
    if (!sentence.startsWith(name) && afterNode?.startsWith(name) !== true) continue;
    const said = saidAbout(name, sentence);
    if (said === undefined || said.length >= rest) continue;
    subject = name;
    rest = said.length;
  }
  return subject;
}

/** Returns the reason in words that do not begin with the name of the target. */
export function withoutName(name: string, reason: Reason): Reason {
  return { ...reason, message: saidAbout(name, reason.message) ?? reason.message };
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
  const isAbout = saidAbout(name, sentence) !== undefined || isNamedIn(name, failure);
  return isAbout && sentence.includes(failure);
}

/** Returns true if the message of the reason contains the whole sentence, so that an output need not show it twice. */
export function isPartOf(sentence: string, { message }: Reason): boolean {
  return message.includes(sentence);
}
