/** Writes what a person reads of a message. All receivers for people get the same text. */
import { printable } from '../util/printable.ts';
import type { Message, MessageSender } from './receivers.ts';

type Event = Message['notes'][number]['event'];

/** Says what to do after the event. A message that waits for an approval has its command already. */
const NEXT: Readonly<Record<Event, ((plan: string) => string) | undefined>> = {
  Started: (plan) => `Follow it: refit status ${plan} --watch`,
  WaveDone: (plan) => `See how far it is: refit status ${plan}`,
  WaitingForApproval: undefined,
  WaitingLong: (plan) => `Find out why: refit why ${plan}`,
  Failed: (plan) => `Find out why: refit why ${plan}`,
  Done: (plan) => `See what was done: refit report ${plan}`,
  Test: undefined,
};

/** The names of a plan that a shell takes as one word. Anybody who may create a plan chooses its name. */
const ONE_WORD = /^[a-z0-9][a-z0-9./-]*$/;

/** The text about one note. */
export interface NoteText {
  /** The sentence, with the name of the cluster before it. */
  readonly title: string;
  /** What to do next; undefined if the sentence says it, or if there is nothing to do. */
  readonly next: string | undefined;
  /** The address at which the page shows the plan; undefined if nobody has said where the page is. */
  readonly link: string | undefined;
}

export function textsOf(
  { notes }: Pick<Message, 'notes'>,
  { cluster, pageUrl }: MessageSender,
): NoteText[] {
  const place = cluster === undefined ? '' : `[${cluster}] `;
  const texts = notes.map(({ event, plan, message }) => ({
    title: printable(`${place}${message}`),
    next: ONE_WORD.test(plan) ? NEXT[event]?.(plan) : undefined,
    link: pageUrl === undefined || plan === '' ? undefined : `${pageUrl}#plan=${fragmentOf(plan)}`,
  }));
  // A message about ten nodes of one plan says once what to do.
  return texts.map((text, index) => {
    const later = texts.slice(index + 1);
    return {
      title: text.title,
      next: later.some(({ next }) => next === text.next) ? undefined : text.next,
      link: later.some(({ link }) => link === text.link) ? undefined : text.link,
    };
  });
}

/** Returns all lines of a note. */
export function linesOf({ title, next, link }: NoteText): string[] {
  return [title, next, link].filter((line) => line !== undefined);
}

/** The page names a plan without a namespace as `<dialect>//<name>`. */
function fragmentOf(plan: string): string {
  const [dialect = '', ...rest] = plan.split('/');
  return encodeURIComponent(rest.length === 1 ? `${dialect}//${rest[0]}` : plan);
}
