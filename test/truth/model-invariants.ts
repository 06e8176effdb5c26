/** The invariants of what people are told, each with a sentence that explains it. */
import type { TargetJson } from '../../src/cli/status/json-form.ts';
import type { Counts } from '../../src/engine/explain/progress.ts';
import { isRemarkable } from '../../src/engine/explain/remarkable-waits.ts';
import { mayBePartOf } from '../../src/versions/release-parts.ts';
import type { Told, TrueNode, Truth } from './model-told.ts';

/** What a judgement says: what is untrue, one sentence each; undefined if the invariant has nothing to say about the state. */
export type Judgement = readonly string[] | undefined;

export interface ToldInvariant {
  readonly name: string;
  readonly sentence: string;
  readonly judge: (told: Told, truth: Truth) => Judgement;
}

export const TOLD_INVARIANTS: readonly ToldInvariant[] = [
  {
    name: 'told-version-runs',
    sentence:
      'A version that is told as the version of a node at rest is the version that its host runs: before an upgrade, after an upgrade, and after a failure that the agent has undone.',
    judge: (told, truth) =>
      concerning(pairs(told, truth), ({ target, wants, node }) => {
        const { runs } = node;
        const versions = versionsTold(target, wants, told.whyOf.get(node.name) ?? '');
        if (runs === undefined || versions.length === 0) return undefined;
        if (isUnknowable(told, target, node)) return undefined;
        return versions
          .filter((version) => !mayBePartOf(version, runs))
          .map((version) => `${node.name} is told to run ${version}, and runs ${runs}`);
      }),
  },
  {
    name: 'done-is-all',
    sentence:
      'A plan is told as done, and its NodeRollout as Completed, only if every node runs what the present plan asks. Otherwise the same text names the nodes that do not.',
    judge: (told, truth) => {
      const { shown, status, nodeRollout } = told;
      const completed = nodeRollout?.conditions?.find(({ type }) => type === 'Completed');
      const texts = [
        ...(shown.phase === 'done' ? [status] : []),
        ...(completed?.status === 'True' ? [completed.message ?? ''] : []),
      ];
      if (texts.length === 0) return undefined;
      const wanted = truth.asked.at(-1) ?? '';
      const unknowable = pairs(told, truth)
        .filter(({ target, node }) => isUnknowable(told, target, node))
        .map(({ node }) => node);
      const others = truth.nodes.filter(
        (node) =>
          truth.targets.has(node.name) && node.runs !== wanted && !unknowable.includes(node),
      );
      return others.flatMap(({ name, runs }) =>
        texts
          .filter((text) => !isNamedIn(name, text))
          .map((text) => `${name} runs ${runs}, not ${wanted}, which is not said: ${text}`),
      );
    },
  },
  {
    name: 'counts-add-up',
    sentence:
      'The counts of the states add up to the number of targets, all surfaces have the same counts, and "every" is said only of all targets.',
    judge: ({ shown, reading, status, nodeRollout }) => {
      const { total, ...parts } = reading.counts;
      const targets = shown.stages.flatMap((stage) => stage.targets);
      const listed = Object.fromEntries(
        Object.keys(parts).map((part) => [
          part,
          targets.filter(({ phase }) => PARTS[phase] === part).length,
        ]),
      );
      const progress = `${parts.done}/${total}`;
      const shownProgress = `${listed['done']}/${total}`;
      const sum = Object.values(parts).reduce((all, count) => all + count, 0);
      const isEvery = [status, ...messagesIn(nodeRollout)].some((text) =>
        /\bevery target is done\b/.test(text),
      );
      return [
        ...(sum === total ? [] : [`the counts add up to ${sum}, not to ${total}`]),
        ...(targets.length === total ? [] : [`${targets.length} targets are listed, not ${total}`]),
        // The record follows the nodes in the next turn, so its counts are compared once it has.
        ...Object.entries(nodeRollout === undefined || isLate(reading) ? {} : parts)
          .filter(([part, count]) => listed[part] !== count)
          .map(([part, count]) => `${listed[part]} targets are listed as ${part}, not ${count}`),
        ...(total === 0 || status.includes(`${shown.phase} ${shownProgress}`)
          ? []
          : [`the status does not say ${shownProgress}`]),
        ...(nodeRollout === undefined || nodeRollout.progress === progress
          ? []
          : [`the NodeRollout says ${nodeRollout.progress}, not ${progress}`]),
        ...(isEvery && parts.done < total
          ? [`every target is told as done, but only ${progress} are`]
          : []),
      ];
    },
  },
  {
    name: 'own-cause',
    sentence: 'The cause that is told for the failure of a node is about this node.',
    judge: ({ shown, whyOf, nodeRollout }, { nodes }) => {
      const targets = shown.stages.flatMap((stage) => stage.targets);
      const failed = targets.filter(({ phase }) => phase === 'failed');
      const recorded = nodeRollout?.history?.[0]?.failures ?? [];
      if (failed.length === 0) return undefined;
      return failed.flatMap(({ name, failure = '' }) => {
        const told = recorded.find(({ node }) => node === name)?.message ?? '';
        const texts = [failure, told, causeIn(whyOf.get(name) ?? '')];
        return nodes
          .filter(
            (other) => other.name !== name && texts.some((text) => isNamedIn(other.name, text)),
          )
          .map((other) => `the cause of ${name} names ${other.name}: ${texts.join(' | ')}`);
      });
    },
  },
  {
    name: 'no-end-unforeseen',
    sentence:
      'No time until the end is told without a leader, while the plan is paused or aborted, or while a node waits for a decision of a person.',
    judge: ({ hasLeader, shown, status, nodeRollout }, truth) => {
      const recorded = new Map(
        shown.stages.flatMap(({ targets }) => targets.map(({ name, phase }) => [name, phase])),
      );
      const awaited = truth.nodes.filter(
        ({ name, awaitsPerson }) => awaitsPerson && recorded.get(name) === 'pending',
      );
      const isOpen = shown.phase === 'new' || shown.phase === 'running';
      const isForeseen =
        isOpen && hasLeader && !truth.isPaused && !truth.isAborted && awaited.length === 0;
      if (isForeseen) return undefined;
      const left = / left\b/.test(status.split('\n').find((line) => line.includes('Plan ')) ?? '');
      return [
        ...(left ? [`a time is told: ${status}`] : []),
        ...(nodeRollout?.eta === undefined ? [] : [`an end is told: ${nodeRollout.eta.at}`]),
      ];
    },
  },
  {
    name: 'roll-back-is-none-else',
    sentence:
      'A plan that rolls back is told as a roll-back, and its work is never called an upgrade.',
    judge: ({ shown, status, why, whyOf, nodeRollout }, { isRollBack }) => {
      if (!isRollBack) return undefined;
      const texts = [status, why, ...whyOf.values(), ...messagesIn(nodeRollout)];
      return [
        ...(shown.rollsBackRun === undefined
          ? ['the JSON form does not say what is rolled back']
          : []),
        ...texts.flatMap((text) =>
          text.split('\n').filter((line) => UPGRADE.test(line) && !line.startsWith('  to do ')),
        ),
      ];
    },
  },
  {
    name: 'same-everywhere',
    sentence:
      'Text, JSON form and NodeRollout name the same phase, the same failed nodes with the same causes, and the same wait.',
    judge: ({ shown, reading, status, why, whyOf, nodeRollout }) => {
      const targets = shown.stages.flatMap((stage) => stage.targets);
      const failed = targets.filter(({ phase }) => phase === 'failed');
      const unsaid = failed.filter(({ name }) => !isNamedIn(name, status) || !isNamedIn(name, why));
      // A deleted node is told as such in all texts, whatever it failed with before.
      const here = failed.filter(({ gone }) => gone !== true);
      const causes = here.flatMap(({ name, failure = '' }) =>
        squeezed(whyOf.get(name) ?? '').includes(squeezed(failure)) ? [] : [`${name}: ${failure}`],
      );
      const waits = shown.waits.filter((wait) => isRemarkable(wait));
      const codes = waits.map(({ reason }) => reason.code);
      const unshown = waits.filter(
        ({ reason: { code } }) =>
          ![status, why].every((text) => text.includes(code === 'Held' ? ' is held' : code)),
      );
      return [
        ...(status.includes(shown.phase) ? [] : [`the status does not say ${shown.phase}`]),
        ...(why.includes(shown.phase) ? [] : [`why does not say ${shown.phase}`]),
        ...unsaid.map(({ name }) => `the failure of ${name} is not told everywhere`),
        ...causes.map((cause) => `why does not tell the cause of ${cause}`),
        ...unshown.map(({ reason }) => `the wait ${reason.code} is not told everywhere`),
        ...(nodeRollout === undefined || isLate(reading) ? [] : differences(nodeRollout)),
      ];

      function differences({ phase, history = [], waiting }: NonNullable<Told['nodeRollout']>) {
        const names = (history[0]?.failures ?? []).map(({ node }) => node);
        const before = failed.map(({ name }) => name);
        const missing = before.filter((name) => !names.includes(name));
        return [
          ...(phase === shown.phase ? [] : [`the NodeRollout says ${phase}, not ${shown.phase}`]),
          ...missing.map((name) => `the NodeRollout does not tell the failure of ${name}`),
          ...(waiting === undefined ||
          codes.some((code) => code === waiting.reason) ||
          (waiting.reason === 'Paused' && shown.paused !== undefined)
            ? []
            : [`only the NodeRollout tells the wait ${waiting.reason}`]),
        ];
      }
    },
  },
  {
    name: 'awaited-exists',
    sentence:
      'A wait belongs to a node that exists and has not ended, and what it waits for exists: a node that comes before is not done, and a free slot is awaited only by a pending node.',
    judge: ({ shown, nodeRollout, now }, { nodes }) => {
      const targets = new Map(
        shown.stages.flatMap((stage) => stage.targets.map((target) => [target.name, target])),
      );
      const isOpen = (name: string): boolean => OPEN.has(targets.get(name)?.phase ?? '');
      const gone = nodes.filter(({ isGone }) => isGone);
      const free = nodeRollout?.conditions?.find(({ message = '' }) =>
        message.includes('wait only'),
      );
      const isPending = [...targets.values()].some(({ phase }) => phase === 'pending');
      if (shown.waits.length === 0 && free === undefined) return undefined;
      return [
        ...shown.waits.flatMap(({ target, gate, after = [], reason }) => [
          ...(target === undefined || isOpen(target) || gate === 'retry'
            ? []
            : [`${target} is told to wait, but has ended: ${reason.message}`]),
          ...after
            .filter((name) => !isOpen(name) && targets.get(name)?.phase !== 'failed')
            .map((name) => `${target} is told to wait for ${name}, which has ended`),
          ...gone
            .filter(({ name }) => isNamedIn(name, reason.message) && reason.code !== 'TargetGone')
            .map(({ name }) => `a wait names ${name}, which does not exist: ${reason.message}`),
        ]),
        ...(free === undefined || isPending
          ? []
          : [`nothing waits for a slot at ${new Date(now).toISOString()}: ${free.message}`]),
      ];
    },
  },
  {
    name: 'stop-is-told',
    sentence:
      'As long as a plan is open, every surface says that people have paused or aborted it.',
    judge: ({ shown, status, wide, why, nodeRollout, now }, truth) => {
      const isOpen = shown.phase === 'new' || shown.phase === 'running';
      if (!isOpen || !(truth.isPaused || truth.isAborted)) return undefined;
      const word = truth.isAborted ? 'abort' : 'paused';
      const texts = { status, wide, why, json: truth.isAborted ? shown.abort : shown.paused };
      const unsaid = Object.entries(texts)
        .filter(([name, text]) => text === undefined || (name !== 'json' && !text.includes(word)))
        .map(([name]) => `${name} does not say that the plan is ${word}`);
      const { waiting } = nodeRollout ?? {};
      const hasPending = shown.stages.some(({ targets }) =>
        targets.some(({ phase }) => phase === 'pending'),
      );
      const isSettled = shown.waits.some(({ since }) => now - Date.parse(since) >= 10_000);
      const isUntold =
        nodeRollout !== undefined && hasPending && isSettled && waiting === undefined;
      return [...unsaid, ...(isUntold ? ['the NodeRollout tells no wait'] : [])];
    },
  },
  {
    name: 'end-ends-waits',
    sentence: 'A plan that has ended waits for nothing, on no surface.',
    judge: ({ shown, status, nodeRollout }) => {
      if (shown.phase === 'new' || shown.phase === 'running') return undefined;
      const waiting = nodeRollout?.conditions?.find(({ type }) => type === 'Waiting');
      return [
        ...shown.waits.map(({ reason }) => `a wait is told: ${reason.message}`),
        ...(/^ {2}waits /m.test(status) ? [`the status tells a wait: ${status}`] : []),
        ...(nodeRollout?.waiting === undefined ? [] : ['the NodeRollout tells a wait']),
        ...(waiting?.status === 'True'
          ? [`the condition Waiting is True: ${waiting.message}`]
          : []),
        ...(shown.next.length === 0 ? [] : [`${shown.next.join()} is told to be next`]),
      ];
    },
  },
  {
    name: 'runs-are-admitted',
    sentence:
      'The NodeRollout lists a run exactly if a leader has admitted it, whatever the plan is called now.',
    judge: ({ nodeRollout }, { admitted }) => {
      if (nodeRollout === undefined || admitted === undefined) return undefined;
      const listed = (nodeRollout.history ?? []).map(({ planUid, id }) => `${planUid}/${id}`);
      return [
        ...listed
          .filter((run) => !admitted.includes(run))
          .map((run) => `no leader has admitted the run ${run}`),
        ...admitted.filter((run) => !listed.includes(run)).map((run) => `${run} is not listed`),
      ];
    },
  },
];

/** The count to which a target in this phase belongs. */
const PARTS: Readonly<Record<TargetJson['phase'], keyof Counts>> = {
  pending: 'pending',
  intended: 'inProgress',
  signalled: 'inProgress',
  working: 'inProgress',
  verifying: 'inProgress',
  done: 'done',
  failed: 'failed',
  missing: 'skipped',
  unsupported: 'skipped',
  skipped: 'skipped',
};

const OPEN: ReadonlySet<string> = new Set<TargetJson['phase']>([
  'pending',
  'intended',
  'signalled',
  'working',
  'verifying',
]);

/**
 * Returns true if a signal was still in transit when somebody aborted the plan. The record of an ended plan does not
 * change any more, so what the node does after that is shown only in the list of the nodes.
 */
function isLate(reading: Told['reading']): boolean {
  const targets = reading.stages().flatMap((stage) => stage.targets);
  return (
    reading.isOver &&
    targets.some(({ recorded, phase }) => recorded === 'pending' && phase !== recorded)
  );
}

const UPGRADE = /\bupgrad(?:e|es|ed|ing)\b/i;

/** The milliseconds after its end within which a node reports its new version. */
const REPORT_MS = 120_000;

/**
 * Returns true if nobody can know which version the node runs, because its object may still show an earlier one. A node
 * reports its version within two minutes after its upgrade.
 */
function isUnknowable({ now }: Told, target: TargetJson, { runs, reports }: TrueNode): boolean {
  if (runs === undefined || reports === undefined) return false;
  const isFresh = target.phase === 'done' && now - Date.parse(target.since) < REPORT_MS;
  const { from } = target;
  // The report is the one from before the upgrade, or somebody has installed that version again.
  if (isFresh) return from !== undefined && mayBePartOf(reports, from);
  return !mayBePartOf(reports, runs);
}

interface Pair {
  readonly target: TargetJson;
  /** The version that the stage of the target asks for. */
  readonly wants: string;
  readonly node: TrueNode;
}

/** Returns each target with its node. If several stages have the target, the last of them counts. */
function pairs({ shown }: Told, { nodes }: Truth): Pair[] {
  return nodes.flatMap((node) => {
    const found = shown.stages.flatMap(({ version, targets }) =>
      targets
        .filter(({ name }) => name === node.name)
        .map((target): Pair => ({ target, wants: version, node })),
    );
    return found.slice(-1);
  });
}

/** Returns what is untrue about the items; undefined if the invariant has nothing to say about any of them. */
function concerning<T>(items: readonly T[], judge: (item: T) => Judgement): Judgement {
  const found = items.map(judge).filter((each) => each !== undefined);
  return found.length === 0 ? undefined : found.flat();
}

/** Returns the versions that the JSON form and `refit why NODE` tell as those of the node now. */
function versionsTold(target: TargetJson, wants: string, why: string): string[] {
  const { phase, installed, runs, asked, rolledBack, from } = target;
  const done = /^ {2}done .*?(?:has|runs|went from \S+ to) (v[^\s;]+)/m.exec(why)?.[1];
  return [
    ...(installed === undefined ? [] : [installed]),
    ...(phase === 'done' ? [runs ?? asked ?? wants] : []),
    ...(phase === 'done' && done !== undefined ? [done] : []),
    ...(phase === 'failed' && rolledBack === true && from !== undefined ? [from] : []),
  ];
}

/** Returns the lines of the section `why` in the output of `refit why NODE`. */
function causeIn(why: string): string {
  return /^ {2}why {5}[^]*?(?=^ {2}\S|(?![^]))/m.exec(why)?.[0] ?? '';
}

function isNamedIn(name: string, text: string): boolean {
  return new RegExp(`(?<![\\w.-])${name}(?![\\w-])`).test(text);
}

function messagesIn(nodeRollout: Told['nodeRollout']): string[] {
  const { conditions = [], waiting, history = [] } = nodeRollout ?? {};
  return [
    ...conditions.map(({ message = '' }) => message),
    ...(waiting === undefined ? [] : [waiting.message ?? '', waiting.ends ?? '']),
    ...history.slice(0, 1).map(({ message = '' }) => message),
  ];
}

/** Returns the text with single spaces in place of line breaks and indents. */
function squeezed(text: string): string {
  return text.replaceAll(/\s+/g, ' ');
}
