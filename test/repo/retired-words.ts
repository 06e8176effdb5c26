/** Lists the words that the glossary retired: how to find each, what to say instead, and examples that must be found. */
import type { SourceFile } from './tree.ts';

interface RetiredWord {
  readonly broken: RegExp;
  readonly instead: string;
  /** Each is found once every `~` is taken out; with it, no search finds the example itself. */
  readonly examples: readonly string[];
}

/** docs/internals/glossary.md says what each of the right words means. */
export const RETIRED: readonly RetiredWord[] = [
  { broken: /errands?/i, instead: 'node action', examples: ['err~and', 'nextErr~ands()'] },
  { broken: /(?<!s)tellers?\b/i, instead: 'reporter', examples: ['the tell~er', 'PlanTell~er'] },
  { broken: /stragglers?/i, instead: 'failed in flight', examples: ['strag~glers'] },
  { broken: /outlooks?/i, instead: 'drain preview', examples: ['the drain outl~ook'] },
  {
    broken: /silences?\b/i,
    instead: 'staleness, or probe backoff',
    examples: ['a sil~ence', 'sil~ences.ts', 'knownSil~ences'],
  },
  { broken: /narrat(?:e|or|ion|ing)/i, instead: 'report', examples: ['narr~ates'] },
  {
    broken: /\b[nN]ews\b|kubelet-?news|[a-z]News\b/,
    instead: 'report, or heartbeat',
    examples: ['kubelet-ne~ws.ts', 'there is no ne~ws', 'isNe~ws()'],
  },
  {
    broken:
      /\bwords? (?:of|from) (?:(?:the|its|this|each|one) (?:node|agent|kubelet|host)|its own may)|\bthe word that\b/i,
    instead: 'report',
    examples: ['by the wo~rd of its agent', 'with the wo~rd that it ended'],
  },
  {
    broken:
      /\bsights?\b|(?<!look-)\b(?:an?|one|each|every|last|first|second|next) look\b(?! for)|\b[lL]ookOnce|\bLooking\b|[a-z]Looking\b/,
    instead: 'observation, read or view',
    examples: ['at first sig~ht', 'the next lo~ok', 'loo~kOnce()', 'buildLook~ing()'],
  },
  {
    broken:
      /\bwithdrawable\b|withdraw(?:s|ing|n)? (?:(?:a|an|the|its|their) )?(?:signal|abort)|(?:signal|abort)s? (?:that )?(?:is|are|was|were) withdrawn/i,
    instead: 'cancel',
    examples: ['a step that is withdraw~able', 'withdra~ws the signal', 'the signal was with~drawn'],
  },
  { broken: /(?<!pam_)\bpermits?\b/i, instead: 'WriteGuard', examples: ['one per~mit'] },
  { broken: /\bfenc(?:e|es|ed|ing)\b/i, instead: 'LeadershipTerm or WriteGuard', examples: ['a fen~cing token'] },
  {
    broken: /\b(?:give|gives|given|giving|gave)[- ]back\b|(?:give|gave|given)Back/i,
    instead: 'uncordon, release or return',
    examples: ['is given ba~ck', 'giveBa~ck()'],
  },
  { broken: /\bgo-on\b|\bgoOn\b/, instead: 'acknowledge', examples: ['the go-o~n', 'signal.goO~n()'] },
  { broken: /(?<!mod )\btid(?:y|ied|ies)\b/i, instead: 'clean up', examples: ['tid~ied up', 'tid~y()'] },
  { broken: /passed[- ]over|passedOver/i, instead: 'skipped', examples: ['is passed ov~er', 'passedOv~er'] },
  {
    broken: /ma(?:ke|kes|de|king)[- ]way\b|makeWay/i,
    instead: 'cordon and drain',
    examples: ['made w~ay', 'makeW~ay'],
  },
  { broken: /\b(?:let|lets)[- ]back\b|letBack/i, instead: 'uncordon', examples: ['let ba~ck', 'letBa~ck'] },
  {
    broken: /\b(?:take|takes|taken|took)[- ]back\b|(?:take|taken)Back/i,
    instead: 'cancel, or uncordon',
    examples: ['taken ba~ck', 'takeBa~ck'],
  },
  { broken: /\breviv(?:e|es|ed|al|ing)\b/i, instead: 'roll back', examples: ['revi~ved'] },
  { broken: /unjudged/i, instead: 'the versions that were skipped', examples: ['unjud~ged'] },
  { broken: /overrul(?:e|ed|es)/i, instead: 'Conflicted', examples: ['Overru~led'] },
  { broken: /campaigns?/i, instead: 'rollout', examples: ['campa~ign', 'startCampa~ign'] },
  { broken: /\bconsent|Consent/, instead: 'drain delegation', examples: ['gave con~sent', 'drainCon~sents'] },
  { broken: /\binquir(?:y|ies|e|es|ed)\b|Inquir/i, instead: 'probe', examples: ['inqui~ries'] },
  { broken: /orders?-carried-out|\bordersOf\b/i, instead: 'controls', examples: ['ordersO~f(plan)'] },
  { broken: /\bstrangers?\b|[a-z]Strangers?/i, instead: 'foreign work', examples: ['stran~gers'] },
  { broken: /\borphans\b/i, instead: 'orphaned work', examples: ['orph~ans.ts'] },
  { broken: /ledgers?/i, instead: 'status shard', examples: ['led~ger'] },
  { broken: /\btenures?\b/i, instead: 'LeadershipTerm', examples: ['ten~ure'] },
  { broken: /coalesc(?:e|es|ed|ing)/i, instead: 'debounce or batch', examples: ['coale~scing'] },
  {
    broken: /\bmend(?:s|ed|ing)?\b|\bmendingOf\b|\brepair (?:it|or)\b/i,
    instead: 'fix',
    examples: ['men~d it', 'it is mend~ed', 'repa~ir it first'],
  },
  { broken: /front doors?\b/i, instead: 'dialect', examples: ['every front do~or'] },
  { broken: /others-?at-?work/i, instead: 'foreign work', examples: ['others-at-wo~rk'] },
  { broken: /ever more (?:seldom|rarely)/i, instead: 'after growing pauses', examples: ['ever more sel~dom'] },
];

/** Where a retired word stands, as `path:line: word → right word`. A file's path counts as its first line. */
export function retiredWordsIn(words: readonly RetiredWord[], files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, text }) =>
    words.flatMap(({ broken, instead }) => {
      const match = broken.exec(`${path}\n${text}`);
      if (match === null) return [];
      const line = Math.max(1, `${path}\n${text}`.slice(0, match.index).split('\n').length - 1);
      return [`${path}:${line}: ${match[0]} → ${instead}`];
    }),
  );
}
