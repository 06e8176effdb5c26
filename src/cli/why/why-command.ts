/** Runs `refit why`: explains the state of each plan or of one node, what it waits for, what ends the wait, and what to do. */

import { isRoutine } from '../../engine/explain/routine-waits.ts';
import { remedyOf } from '../../engine/model/reasons.ts';
import { isOpenPlan, isRefusedPlan } from '../../engine/model/shown-phases.ts';
import { RefitError } from '../../util/errors.ts';
import { timeWithZone } from '../../util/maintenance-windows.ts';
import { listed } from '../../util/phrases.ts';
import { toDo } from '../advice/advice.ts';
import { planFlag } from '../advice/plan-flag.ts';
import { startsOf } from '../advice/starting-commands.ts';
import type { ConnectionFlags } from '../options.ts';
import { type Medium, mediumOf } from '../output.ts';
import { age } from '../phrases.ts';
import { hookSection } from '../status/hook-section.ts';
import {
  type ShownPlan,
  type ShownStatus,
  type StageJson,
  type TargetJson,
} from '../status/json-form.ts';
import { ignoresControls, isLeaderless } from '../status/leaderless.ts';
import type { PlanFilter } from '../status/plan-names.ts';
import * as sentences from '../status/sentences.ts';
import { silenceSection, silencingOf, targetSilenceSection } from '../status/silence-section.ts';
import { statusJson } from '../status/status-json.ts';
import { inSession, observeOnce, plansIn, type SessionParts } from '../status/status-session.ts';
import * as text from '../status/text.ts';
import { askedOf, machineSection, targetNamed } from './named-targets.ts';
import { namesIn, waitsOf } from './target-waits.ts';

export type WhyFlags = ConnectionFlags & PlanFilter & { readonly output?: 'text' | 'json' };

/**
 * Prints the explanation. Resolves even if a plan has failed. Rejects with REFIT_CONTROL if `node`
 * is not a target of any plan.
 */
export async function showWhy(node: string | undefined, flags: WhyFlags, parts: SessionParts) {
  const { clock, output } = parts;
  await inSession(flags, parts, 'refit-why', async (session) => {
    const now = clock.now();
    const status = await observeOnce(session, now);
    if (flags.output === 'json') {
      output.write(`${JSON.stringify(statusJson(whyView(status, node)), undefined, 2)}\n`);
      return;
    }
    // All plans of the session are counted, because the filter of the user may have left out other plans.
    const hasOthers = plansIn(session.loaded).length > 1;
    const lines = whyLines({ ...status, hasOthers }, node, now, mediumOf(output));
    output.write(`${lines.join('\n')}\n`);
  });
}

/**
 * Returns the JSON form, which has the fields of `refit status -o json`. With a node, it has only the plans, stages, waits and cordons of
 * that node. Throws REFIT_CONTROL if `node` is not a target of any plan.
 */
export function whyView(all: ShownStatus, named: string | undefined): ShownStatus {
  const { status, node } = askedOf(all, named);
  if (node === undefined) return status;
  const plans = status.plans.flatMap((plan) => {
    const isTarget = targetNamed(plan, node);
    const stages = plan.stages
      .map((stage) => ({ ...stage, targets: stage.targets.filter(isTarget) }))
      .filter(({ targets }) => targets.length > 0);
    const joined = plan.joined?.filter(({ name }) => name === node);
    if (stages.length === 0 && !joined?.length) return [];
    const names = new Set(stages.flatMap(({ targets }) => targets.map(({ name }) => name)));
    const waits = plan.waits.filter(
      ({ target, ofStage }) => target === undefined || ofStage === true || names.has(target),
    );
    const cordoned = plan.cordoned?.filter(({ target }) => names.has(target));
    const moving = stages.flatMap(({ targets }) => targets).find(sentences.isMoving);
    const next = plan.next.filter((name) => names.has(name));
    const hooks = plan.hooks?.filter(({ target }) => target !== undefined && names.has(target));
    return [
      {
        ...plan,
        stages,
        waits,
        next,
        ...(joined?.length ? { joined } : { joined: undefined }),
        hooks: hooks?.length ? hooks : undefined,
        // Silences are shown only for a node in progress, because only alerts about such nodes are silenced.
        silencing: moving && plan.silencing && silencingOf(plan.silencing, moving.name),
        ...(cordoned?.length ? { cordoned } : { cordoned: undefined }),
      },
    ];
  });
  if (plans.length === 0) throw noTarget(node);
  return { ...status, plans };
}

function noTarget(node: string): RefitError {
  return new RefitError('REFIT_CONTROL', `no plan has ${node} among its targets`, {
    hint: 'see the names with `refit status -o wide`; if there is no plan, use `kubectl get nodes`',
  });
}

interface ExplainedStatus extends ShownStatus {
  /** True if the cluster has more than one plan. The proposed commands must then name the plan. */
  readonly hasOthers?: boolean;
}

/** Returns the output. `now` is in milliseconds since the Unix epoch. Throws REFIT_CONTROL if `node` is not a target of any plan. */
export function whyLines(
  all: ExplainedStatus,
  named: string | undefined,
  now: number,
  medium: Medium,
): string[] {
  const { status, node } = askedOf(all, named);
  const { plans } = status;
  if (plans.length === 0 && node === undefined)
    return [...text.noteLines(status, now), 'There is no plan.'];
  // Repeated warnings are removed only if the command was called without the name of a node. Each block about a node
  // must be complete, so it has all warnings.
  const shown = node === undefined ? sentences.toldOnce(plans) : plans;
  const blocks = shown.flatMap((plan) =>
    node === undefined
      ? [
          [
            ...text.header(plan, now, medium),
            ...text.renderSections(planSections(status, plan, now), medium),
          ],
        ]
      : nodeBlocks(status, plan, node, now, medium),
  );
  if (blocks.length === 0) throw noTarget(node ?? '');
  return blocks.flatMap((block, index) => (index === 0 ? block : ['', ...block]));
}

/** Returns what `refit why` says about a plan. */
export function planSections(
  status: ExplainedStatus,
  plan: ShownPlan,
  now: number,
): text.Section[] {
  return [
    ...(isOpenPlan(plan) ? runnerSections(status, plan, now) : []),
    { heading: 'why', lines: failureLines(plan, now), style: 'red' },
    text.stoppedSection(plan),
    text.rollBackSection(plan),
    ...(isOpenPlan(plan) ? progress(status, plan, now) : []),
    text.missingSection(plan),
    hookSection(plan, now),
    silenceSection(plan, now),
    { heading: 'next', lines: plan.next.length > 0 ? [listed(plan.next)] : [] },
    { heading: 'cordon', lines: sentences.cordonLines(plan) },
    text.joinedSection(plan),
    { heading: 'decided', lines: plan.decided ?? [] },
    text.warningSection(plan),
    { heading: 'agents', lines: text.agentLines(plan) },
    { heading: 'to do', lines: toDo(plan) },
    { heading: 'you can', lines: controlsOf(plan, status) },
  ];
}

function failureLines(plan: ShownPlan, now: number): string[] {
  const failed = sentences.failedRows(plan, now);
  return [...sentences.reasonLines(plan, failed), ...failed.map(sentences.sentenceOf)];
}

/**
 * Returns the most important line of `planSections`. It says what blocks the plan or a node of the plan, or else what
 * happens now. Returns an empty text if there is nothing to say, for example about a plan that is done.
 */
export function chiefLine(status: ShownStatus, plan: ShownPlan, now: number): string {
  const failures = failureLines(plan, now);
  if (!isOpenPlan(plan)) return failures[0] ?? '';
  const waits = plan.waits.filter((wait) => !isRoutine(wait));
  const names = new Set(waits.map(({ target }) => target));
  const stages = plan.stages.map((stage) => ({
    ...stage,
    targets: stage.targets.filter(({ name }) => names.has(name)),
  }));
  const moving = (of: ShownPlan) => sentences.movingRows(of, now).map(sentences.sentenceOf);
  const lines = [
    ...(isLeaderless(status, plan) ? text.noteLines({ ...status, plans: [plan] }, now) : []),
    ...sentences.waitLines({ ...plan, waits }, now),
    ...moving({ ...plan, waits, stages }),
    ...failures,
    ...text.heldSection(plan).lines,
    ...sentences.pauseLines(plan),
    ...moving(plan),
    ...sentences.waitLines(plan, now),
  ];
  return lines[0] ?? '';
}

/**
 * Returns why a pending target has not started, in the words of `nodeSections`; an empty text if nothing blocks the
 * target.
 */
export function notStarted(plan: ShownPlan, stage: StageJson, target: TargetJson): string {
  if (isStopped(plan, target)) return stoppedLine(plan, target);
  const { name, held } = target;
  if (held !== undefined) return sentences.heldLines([{ name, ...held }])[0] ?? '';
  const waits = waitsOf(plan, stage, target);
  const wait = waits.find((each) => !isRoutine(each));
  // The wait of a whole queue comes last, because it contains only the number of nodes in the queue and nothing about
  // this node.
  return wait?.reason.message ?? queueLine(plan, stage, target) ?? waits[0]?.reason.message ?? '';
}

/** Returns one block for each stage with this target. `node` is the name of a node or of a Machine. */
function nodeBlocks(
  status: ShownStatus,
  plan: ShownPlan,
  node: string,
  now: number,
  medium: Medium,
): string[][] {
  const blocks = nodeSections(status, plan, node, now).map(({ stage, target, sections }) => [
    ...text.header(plan, now, medium, `${target.name}  ${stage.role} of `),
    ...text.renderSections(sections, medium),
  ]);
  const joined = text.joinedSection(plan, node);
  if (blocks.length > 0 || joined.lines.length === 0) return blocks;
  return [
    [
      ...text.header(plan, now, medium, `${node}  not in `),
      ...text.renderSections([joined], medium),
    ],
  ];
}

/** Returns what `refit why NODE` says, for each stage with this target. */
export function nodeSections(status: ShownStatus, plan: ShownPlan, node: string, now: number) {
  return plan.stages.flatMap((stage) =>
    stage.targets.filter(targetNamed(plan, node)).map((target) => ({
      stage,
      target,
      sections: [
        ...sectionsOf(status, plan, stage, target, now),
        machineSection(plan, target),
        hookSection(plan, now, target.name),
        // Silences are shown only for a node in progress, because only alerts about such nodes are silenced.
        ...(sentences.isMoving(target) ? [targetSilenceSection(plan, target.name, now)] : []),
        text.wayBackSection(target.wayBack),
        text.snapshotSection([target]),
        cordonSection(plan, target),
        text.joinedSection(plan, target.name),
        { heading: 'decided', lines: plan.decided ?? [] },
        text.warningSection(plan),
        agentSection(target),
      ],
    })),
  );
}

function cordonSection({ cordoned = [] }: ShownPlan, { name }: TargetJson): text.Section {
  const lines = cordoned.flatMap(({ target, message }) => (target === name ? [message] : []));
  return { heading: 'cordon', lines };
}

/** Returns the section about the agent of the target. It has no lines if the agent is unknown and reports no delay. */
function agentSection({ agent, delay }: TargetJson): text.Section {
  const lacks = agent?.lacks === undefined ? '' : `: ${agent.lacks}`;
  const isKnown = agent?.ours === true || lacks !== '';
  const waits = delay === undefined ? [] : [`has not begun: ${delay}`];
  return { heading: 'agent', lines: [...(isKnown ? [`${agent?.title}${lacks}`] : []), ...waits] };
}

function sectionsOf(
  status: ShownStatus,
  plan: ShownPlan,
  stage: StageJson,
  target: TargetJson,
  now: number,
) {
  const { phase } = target;
  const { reason, ...rest } = plan;
  if (phase === 'done') {
    const done = {
      heading: 'done',
      lines: [`${age(target.since, now)} ago, ${changeOf(stage, target)}`],
    };
    const isTrue = isOpenPlan(plan) || (target.runs === undefined && plan.phase !== 'edited');
    return isTrue ? [done] : [done, ...whyAndToDo(sentences.reasonOf(plan) ?? '', plan)];
  }
  const stages = [{ ...stage, targets: [target] }];
  const own: ShownPlan = {
    ...rest,
    stages,
    waits: waitsOf(plan, stage, target),
    next: [],
    // The pause is left out for a node in progress, because it does not stop such a node.
    paused: sentences.isMoving(target) ? undefined : plan.paused,
  };
  if (phase === 'skipped') return whyAndToDo(sentences.sentenceOfSkipped(target), plan);
  if (phase === 'failed') {
    const retried = plan.waits.filter(
      ({ gate, target: name }) => gate === 'retry' && name === target.name,
    );
    return [
      ...whyAndToDo(sentences.sentenceOf(sentences.failedRow(plan, target, now)), plan),
      { heading: 'waits', lines: retried.map(({ reason }) => reason.message), style: 'yellow' },
      { heading: 'ends', lines: sentences.endLines(retried) },
    ];
  }
  if (isStopped(plan, target)) {
    const [why, ...rest] = whyAndToDo(stoppedLine(plan, target), withOwnRemedy(plan, target));
    return [why, text.stoppedSection(plan), ...rest].filter((each) => each !== undefined);
  }
  const isSaid =
    sentences.isMoving(target) || own.waits.some((wait) => wait.target === target.name);
  const queue = isSaid ? [] : queueSections(plan, stage, target, now);
  const canStart = phase === 'pending' && !ignoresControls(status, plan);
  // A plan that is about to end starts no further node.
  const endsSoon = phase === 'pending' ? sentences.reasonLines({ ...own, reason }, []) : [];
  return [
    ...runnerSections(status, plan, now),
    { heading: 'why', lines: endsSoon, style: 'red' },
    ...progress(status, own, now),
    ...queue,
    text.missingSection({ ...own, reason }),
    { heading: 'you can', lines: canStart ? startsOf(own) : [] },
  ];
}

/** Returns true if the target is not in progress and does not start unless a person changes something. */
function isStopped(plan: ShownPlan, target: TargetJson): boolean {
  return isRefusedPlan(plan, plan.reason) || !(isOpenPlan(plan) || sentences.isMoving(target));
}

/** Returns why the target has not started. If the plan is refused because of several targets, its own reason counts. */
function stoppedLine(plan: ShownPlan, { refusal }: TargetJson): string {
  const reason = refusal?.message ?? sentences.reasonOf(plan);
  return `not started: ${reason ?? 'no reason is recorded'}`;
}

/** Returns the plan with the remedy for the target, because the plan has the remedy for its first refused target. */
function withOwnRemedy(plan: ShownPlan, { refusal }: TargetJson): ShownPlan {
  return refusal === undefined ? plan : { ...plan, remedy: remedyOf(refusal.code) };
}

function changeOf(
  { version: wanted }: StageJson,
  { from, runs, asked, gone, hadVersion = false }: TargetJson,
): string {
  const version = asked ?? wanted;
  if (gone === true) return `got ${version}; ${sentences.GONE}`;
  if (runs !== undefined && runs !== asked) return `runs ${runs}`;
  const moved = from === undefined ? `has ${version}` : `went from ${from} to ${version}`;
  const change = hadVersion ? `ran ${version} already before its last attempt` : moved;
  return asked === undefined
    ? change
    : `${change}; the plan has been edited since, and now says ${wanted}`;
}

function whyAndToDo(line: string, plan: ShownPlan): text.Section[] {
  return [
    { heading: 'why', lines: line === '' ? [] : [line], style: 'red' },
    { heading: 'to do', lines: toDo(plan) },
  ];
}

/** Returns a section that says when a target without a wait of its own starts. */
function queueSections(
  plan: ShownPlan,
  stage: StageJson,
  target: TargetJson,
  now: number,
): text.Section[] {
  const line = queueLine(plan, stage, target);
  if (line === undefined) return [];
  return earlierStage(plan, stage) === undefined
    ? [{ heading: 'next', lines: [line] }]
    : [{ heading: 'waits', lines: [`${line} (${age(target.since, now)})`] }];
}

/** Returns a line that says when the target starts; undefined if that is unknown. */
function queueLine(
  plan: ShownPlan,
  stage: StageJson,
  { name, held, gone }: TargetJson,
): string | undefined {
  const earlier = earlierStage(plan, stage);
  if (earlier !== undefined) return `until the ${earlier.role}s are done`;
  if (gone === true || plan.next.length === 0 || held !== undefined) return undefined;
  return namesIn(plan).next.has(name)
    ? 'it is among the next to start'
    : 'not yet: other nodes start before it';
}

/** Returns the stage that must end before `stage` begins; undefined if `stage` is active. */
function earlierStage({ stages }: ShownPlan, stage: StageJson): StageJson | undefined {
  return stage.active ? undefined : stages.find(({ active }) => active);
}

/** Returns sections about what is in progress, what waits, what ends the waits, and what could not be checked. */
function progress(status: ShownStatus, plan: ShownPlan, now: number): text.Section[] {
  // Without a leader, no node starts and no deadline is applied. The heading of the waits is then `then`, because the
  // waits matter only after a leader has started.
  const isLater = isLeaderless(status, plan);
  const refused = isRefusedPlan(plan, plan.reason);
  return [
    { heading: 'now', lines: sentences.movingRows(plan, now).map(sentences.sentenceOf) },
    { heading: isLater ? 'then' : 'waits', lines: sentences.waitLines(plan, now), style: 'yellow' },
    text.heldSection(plan),
    { heading: 'paused', lines: refused ? [] : sentences.pauseLines(plan) },
    { heading: 'ends', lines: refused ? [] : sentences.endLines(plan.waits) },
    { heading: 'limit', lines: refused || isLater ? [] : deadlineLines(plan, now) },
    text.checkSection(plan, now),
    { heading: 'unknown', lines: plan.unseen ?? [] },
  ];
}

/**
 * Returns a line with the first deadline of the targets in progress. After this deadline, the target fails, or its
 * agent rolls it back.
 */
function deadlineLines(plan: ShownPlan, now: number): string[] {
  const moving = sentences.movingNames(plan);
  const waiting = plan.waits.filter(
    ({ target = '', reason }) =>
      moving.has(target) && !['Intended', 'Resting'].includes(reason.code),
  );
  if (waiting.length === 0) return [];
  const [first] = waiting
    .flatMap(({ target, until }) => (until === undefined ? [] : [{ target, until }]))
    .toSorted((a, b) => Date.parse(a.until) - Date.parse(b.until));
  if (!first) return [`a node in progress fails when ${plan.texts.advice.limit}`];
  const { target, until } = first;
  const shown = timeWithZone(Date.parse(until), plan.timeZone);
  const own = sentences
    .targetsOf(plan)
    .flatMap((each) => (each.name === target ? rollBackLine(each, plan, now) : []));
  if (own.length > 0) return own;
  return [
    Date.parse(until) > now
      ? `${target} fails at ${shown} if this step has not ended by then`
      : `${target} fails soon: its deadline ${shown} passed ${age(until, now)} ago. After a change of leader it can take longer, because the new leader counts from its own start`,
  ];
}

/**
 * Returns a line that says when the agent of the target rolls back. The agent rolls back before the deadline of the
 * leader, because that deadline is for agents that have stopped reporting.
 */
function rollBackLine(
  { name, rollsBack }: TargetJson,
  { timeZone }: Pick<ShownPlan, 'timeZone'>,
  now: number,
): string[] {
  if (rollsBack === undefined) return [];
  const { unanswered, notReady } = rollsBack;
  if (Date.parse(unanswered) > now)
    return [
      `${name} rolls back at ${timeWithZone(Date.parse(unanswered), timeZone)} if the new version has not answered by then`,
    ];
  return Date.parse(notReady) > now
    ? [
        `${name} rolls back by ${timeWithZone(Date.parse(notReady), timeZone)} if its node is not Ready by then`,
      ]
    : [];
}

/**
 * Returns sections about the process that carries the plan out. A missing leader is shown as the reason, because all other waits depend on
 * it.
 */
function runnerSections(status: ShownStatus, plan: ShownPlan, now: number): text.Section[] {
  const notes = text.noteLines({ ...status, plans: [plan] }, now);
  const runner = plan.texts.advice.name;
  // Without a known Lease, no command can see whether the process runs.
  const isUnknown = notes.length === 0 && plan.texts.process.lease === undefined;
  const lines = isUnknown
    ? [`${runner} carries it out; this command cannot see whether it is running`]
    : notes;
  if (!isLeaderless(status, plan)) return [{ heading: 'note', lines }];
  return [
    { heading: 'why', lines, style: 'red' },
    { heading: 'ends', lines: ['when a refit controller runs and acquires the lease'] },
  ];
}

function controlsOf(plan: ShownPlan, status: ExplainedStatus): string[] {
  const { plans, hasOthers = plans.length > 1 } = status;
  if (ignoresControls(status, plan)) return [];
  if (!isOpenPlan(plan) || plan.abort !== undefined || isRefusedPlan(plan, plan.reason)) return [];
  const flag = planFlag(plan, { hasOthers });
  const isUnproved = plan.waits.some(({ reason }) => reason.code === 'ControlsUnproved');
  const either = plan.paused === 'plan' ? ['resume'] : ['pause'];
  const words = [...(isUnproved ? ['pause', 'resume'] : either), 'abort'];
  return [...startsOf(plan), words.map((word) => `refit ${word}${flag}`).join(', ')];
}
