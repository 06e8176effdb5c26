/**
 * Says what people can do in each situation of a plan, in the words of its dialect. All texts with advice about plans come
 * from the table in this file.
 */
import type { Situation } from '../../engine/explain/situations.ts';
import { actBeforeRetry } from '../../engine/model/reasons.ts';
import { capitalized, listed } from '../../util/phrases.ts';
import type { AdviceJson, Guidance } from '../contract/guidance.ts';
import type { ShownPlan } from '../status/json-form.ts';
import { awaitedChecks, planFlag } from './plan-flag.ts';
import { startingCommand } from './starting-commands.ts';

/** An advice about one situation. */
interface Advice extends Guidance {
  /** What comes of it, as a clause. */
  readonly outcome: string;
}

type Kind = Situation['kind'];
type In<K extends Kind> = Extract<Situation, { readonly kind: K }>;

/** The advice of each situation. A situation without an entry does not compile. `clause` is one or more sentences. */
type Table = { readonly [K in Kind]: (situation: In<K>, plan: ShownPlan) => Advice };

/** The most names in a list of left-out nodes. */
const FEW = 8;

const TABLE: Table = {
  WillBeRefused: (_, plan) => ({
    clause:
      plan.texts.advice.corrected ?? `Refit will refuse this plan. ${plan.remedy ?? 'Correct it.'}`,
    commands: [],
    outcome: 'the plan starts',
  }),
  Refused: (_, plan) => {
    const { corrected } = plan.texts.advice;
    if (corrected !== undefined)
      return { clause: `Not started. ${corrected}`, commands: [], outcome: 'the plan starts' };
    const again = plan.texts.advice.again(plan);
    return {
      clause: `Refused. ${plan.remedy ?? FIX} Then: ${again.clause}.`,
      commands: again.commands,
      outcome: 'the plan starts',
    };
  },
  MixedVersions: (_, plan) => {
    const { advice } = plan.texts;
    const anew = advice.again(plan);
    return {
      clause: `The nodes have different versions. To bring all of them to the version of the plan: ${anew.clause}. To go back: ${advice.goBack(plan).clause}.`,
      commands: anew.commands,
      outcome: 'all nodes get the version of the plan',
    };
  },
  StartsAgain: () => ({
    clause:
      'Nothing. The leader starts the edited plan again, as edits.afterEnd of its policy says. If no leader runs now, the next one starts it.',
    commands: [],
    outcome: 'the leader starts the edited plan again',
  }),
  Edited: editedAdvice,
  Aborted: ({ refused, checks }, plan) => {
    const anew = plan.texts.advice.startOver(plan);
    const again = `Aborted. To start again: ${anew.clause}.`;
    const back = refused.length === 0 ? undefined : goBackOf(plan, checks);
    return {
      clause:
        back === undefined ? again : `${again} To take the upgraded nodes back: ${back.clause}`,
      commands: anew.commands,
      outcome: 'the plan starts again',
    };
  },
  Differs: ({ nodes }, plan) => {
    const again = plan.texts.advice.again(plan, nodes);
    return {
      clause: `The plan has ended, but its nodes were changed afterwards. Find out who changed them; to upgrade them again: ${again.clause}.`,
      commands: again.commands,
      outcome: 'the nodes get the version of the plan',
    };
  },
  Empty: (_, plan) => {
    const { advice } = plan.texts;
    const outcome = 'the plan has nodes to upgrade';
    if (advice.corrected !== undefined)
      return {
        clause:
          'No node was upgraded. Correct the nodeSelector of the Plan, or its concurrency, which must be at least 1. The Plan then continues by itself.',
        commands: [],
        outcome,
      };
    const again = advice.again(plan);
    return {
      clause: `No node was upgraded. Correct the nodes or selectors of ${advice.listing}, then: ${again.clause}.`,
      commands: again.commands,
      outcome,
    };
  },
  Mended: ({ nodes, isPartial }, plan) => {
    const run = nodes.length === 1 ? 'runs' : 'run';
    const clause = `Nothing to fix: ${listed(nodes)} ${run} the version now.`;
    if (!isPartial) return { clause, commands: [], outcome: 'nothing is left to do' };
    const anew = plan.texts.advice.again(plan);
    return {
      clause: `${clause} For the other nodes: ${anew.clause}.`,
      commands: anew.commands,
      outcome: 'the other nodes are upgraded',
    };
  },
  MendedKeepsSlot: ({ nodes }, plan) => {
    const run = nodes.length === 1 ? 'runs' : 'run';
    const keep = nodes.length === 1 ? 'it keeps its slot' : 'they keep their slots';
    const retried = retryOf(plan, nodes);
    return {
      clause: `${listed(nodes)} ${run} the version now, but the plan does not know it, and ${keep}. To let other nodes start, ${retried.clause}`,
      commands: retried.commands,
      outcome: 'other nodes start',
    };
  },
  RetriedByItself: (situation, plan) => {
    const { nodes, at } = situation;
    const isOne = nodes.length === 1;
    const when = at === undefined ? '' : `, ${isOne ? '' : 'the first '}at ${at}`;
    const cause =
      repairOf(situation) ?? `Fix the cause (${plan.texts.advice.retry?.causes ?? 'the node'})`;
    const clause = `Refit tries ${listed(nodes)} again by itself${when}. ${cause} before that.`;
    // Without `refit retry`, only a new run tries them again, and a new run cannot begin before the end of this one.
    if (plan.texts.advice.retry === undefined)
      return { clause, commands: [], outcome: triedAgain(nodes) };
    const retried = retryOf(plan, nodes);
    return {
      clause: `${clause} To try ${isOne ? 'it' : 'them'} sooner, ${retried.clause}`,
      commands: retried.commands,
      outcome: triedAgain(nodes),
    };
  },
  ReleaseRefused: ({ isRollBack, refused, nodes, checks }, plan) => {
    const run = refused.length === 1 ? 'runs' : 'run';
    const found = `Failed. ${listed(refused)} ${run} the version, but failed afterwards.`;
    const retried = retryOf(plan, nodes);
    const repaired = `repair it, then ${retried.clause}`;
    // A plan that already goes back has no release to leave.
    if (isRollBack)
      return {
        clause: `${found} Find the cause: ${repaired}`,
        commands: retried.commands,
        outcome: triedAgain(nodes),
      };
    const back = goBackOf(plan, checks);
    return {
      clause: `${found} If the release is bad: ${back.clause} If the cause is elsewhere: ${repaired}`,
      commands: back.commands,
      outcome: 'the upgraded nodes leave the release',
    };
  },
  NodesFailed: (situation, plan) => {
    const { advice } = plan.texts;
    const { nodes } = situation;
    if (advice.retry === undefined) return runAgain(plan, repairOf(situation));
    const retried = retryOf(plan, nodes);
    const repair = repairOf(situation);
    const cause = repair ?? `Fix the cause (${advice.retry.causes})`;
    // The release may be at fault only if nothing else is known to be. A roll-back has no other version to go to.
    const isOfRelease = repair === undefined && !situation.isRollBack;
    const other = isOfRelease ? advice.otherVersion(plan) : undefined;
    const instead = other === undefined ? '' : ` If the release is bad: ${other}.`;
    return {
      clause: `Failed. ${cause}, then ${retried.clause}${instead === '' ? '' : `.${instead}`}`,
      commands: retried.commands,
      outcome: triedAgain(nodes),
    };
  },
  NodesGone: ({ nodes, isRollBack }, plan) => {
    const { advice } = plan.texts;
    const back = nodes.length === 1 ? `When ${listed(nodes)} is` : 'When they are';
    if (advice.retry === undefined) {
      const again = advice.again(plan, nodes);
      return {
        clause: `Failed. ${back} back, or out of ${advice.listing}: ${again.clause}.`,
        commands: again.commands,
        outcome: triedAgain(nodes),
      };
    }
    const retried = retryOf(plan, nodes);
    if (advice.retriesGone) {
      const them = nodes.length === 1 ? 'it' : 'them';
      return {
        clause: `Failed. If ${namesOf(nodes)} will not come back, ${retried.clause}: the plan goes on without ${them}.`,
        commands: retried.commands,
        outcome: 'the other nodes are upgraded',
      };
    }
    const without =
      !isRollBack && plan.updateConfig === undefined
        ? 'delete the Plan and apply one without the missing nodes'
        : advice.again(plan).clause;
    return {
      clause: `Failed. ${back} back, ${retried.clause}. Or ${without}.`,
      commands: retried.commands,
      outcome: triedAgain(nodes),
    };
  },
  Failed: (_, plan) => runAgain(plan),
  LeftOut: ({ nodes, held, isEdited }, plan) => {
    const isOne = nodes.length === 1;
    if (isEdited && plan.texts.advice.retry !== undefined) {
      const command = retrySkipped(plan);
      return {
        clause: `Left out: ${namesOf(nodes)}. With ${command}, only ${isOne ? 'this node gets' : 'these nodes get'} what the edited plan asks for. The nodes that are done keep what they have.`,
        commands: [command],
        outcome: upgraded(nodes),
      };
    }
    const first = held.length > 0 ? 'run refit unhold for each held node, then ' : '';
    const again = skippedAgain(plan);
    return {
      clause: `Left out: ${namesOf(nodes)}. To upgrade ${isOne ? 'it' : 'them'}, ${first}${again.clause}`,
      commands: [...held.map((name) => `refit unhold ${name}`), ...again.commands],
      outcome: upgraded(nodes),
    };
  },
  PinnedLeftOut: ({ nodes }, plan) => {
    const isOne = nodes.length === 1;
    const its = isOne ? 'its pin' : 'their pins';
    const again = skippedAgain(plan);
    return {
      clause: `Left out: ${namesOf(nodes)}, because of ${its}. Nothing is to be done if the pin is right. To upgrade ${isOne ? 'it' : 'them'}, first remove or change ${its} in UpgradePolicy ${plan.policy}, then ${again.clause}`,
      commands: [`kubectl edit upgradepolicy ${plan.policy}`, ...again.commands],
      outcome: upgraded(nodes),
    };
  },
  CordonedByOthers: (situation, plan) =>
    starting(situation, plan, `${listed(situation.nodes)} can start`),
  WaveUnapproved: (situation, plan) =>
    starting(situation, plan, `wave ${situation.wave} can start`),
  Held: (situation, plan) => starting(situation, plan, `${situation.target} can start`),
  WindowClosed: (situation, plan) =>
    starting(situation, plan, 'nodes start outside of the windows'),
  Blackout: (situation, plan) => starting(situation, plan, 'nodes start in spite of the blackout'),
};

/** The remedy of a plan without a known reason. */
const FIX = 'Fix the cause.';

/** Returns the advice about one situation. */
function adviceIn<K extends Kind>(situation: In<K>, plan: ShownPlan): Advice {
  const rows: { readonly [Each in Kind]: (of: In<Each>, plan: ShownPlan) => Advice } = TABLE;
  return (rows[situation.kind] as (of: In<K>, plan: ShownPlan) => Advice)(situation, plan);
}

/** Returns what people should do about the plan, one text for each situation. What lets targets start is not part of it. */
export function toDo(plan: ShownPlan): string[] {
  return plan.situations
    .filter(({ kind }) => !STARTS.has(kind))
    .map((situation) => adviceIn(situation, plan).clause);
}

const STARTS: ReadonlySet<Kind> = new Set<Kind>([
  'CordonedByOthers',
  'WaveUnapproved',
  'Held',
  'WindowClosed',
  'Blackout',
]);

/** Returns the JSON form of the advice about the plan, the most helpful first. */
export function adviceJson(plan: ShownPlan): AdviceJson[] {
  return plan.situations.map((situation) => {
    const { clause, commands, outcome } = adviceIn(situation, plan);
    const nodes = 'nodes' in situation ? situation.nodes : undefined;
    return { situation: situation.kind, nodes, text: clause, commands, outcome };
  });
}

function editedAdvice({ isRollBack, failed }: In<'Edited'>, plan: ShownPlan): Advice {
  const { advice } = plan.texts;
  const ignored = 'The edit is not carried out, because the plan had ended.';
  const again = advice.again(plan);
  if (isRollBack)
    return {
      clause: `${ignored} To go back as recorded: ${again.clause}.`,
      commands: again.commands,
      outcome: 'the nodes go back as recorded',
    };
  if (plan.updateConfig !== undefined)
    return {
      clause: `${ignored} UpdateConfig ${plan.updateConfig} created this Plan, so change spec.planSpec of the UpdateConfig, if it still exists. To upgrade the nodes again: ${again.clause}.`,
      commands: again.commands,
      outcome: 'the nodes are upgraded again',
    };
  const [first] = failed;
  if (first === undefined || advice.retry === undefined)
    return {
      clause: `${ignored} To run it: ${again.clause}.`,
      commands: again.commands,
      outcome: 'the edited plan runs',
    };
  const command = `refit retry ${first}${planFlag(plan)}`;
  return {
    clause: `${ignored} To continue with the edit, run: ${command}. To run it for all nodes: ${again.clause}.`,
    commands: [command],
    outcome: 'the plan continues with the edit',
  };
}

/** Returns the advice about a failure that no retry of a node ends. */
function runAgain(plan: ShownPlan, repair?: string): Advice {
  const again = plan.texts.advice.again(plan);
  const fix = repair === undefined ? (plan.remedy ?? FIX) : `${repair}.`;
  return {
    clause: `Failed. ${fix} Then: ${again.clause}.`,
    commands: again.commands,
    outcome: 'the plan continues',
  };
}

/** Returns how the user takes the upgraded nodes back: a clause, a full stop, and sentences about the checks that then wait. */
function goBackOf(plan: ShownPlan, checks: readonly string[]): Guidance {
  const { clause, commands } = plan.texts.advice.goBack(plan);
  const awaited = awaitedChecks(plan, checks).map((line) => `${line}.`);
  return { clause: [`${clause}.`, ...awaited].join(' '), commands };
}

/**
 * Returns the instruction that ends the cause of the failures; undefined if the targets failed for different reasons, or
 * if only the node itself knows the cause.
 */
function repairOf({ code, budgets }: In<'NodesFailed' | 'RetriedByItself'>): string | undefined {
  if (code === undefined) return undefined;
  if (budgets.length > 0) return letEvict(budgets);
  const act = actBeforeRetry(code);
  return act && capitalized(act);
}

/** Returns the instruction for a drain that PodDisruptionBudgets blocked until its deadline. */
function letEvict(budgets: readonly string[]): string {
  const which = `PodDisruptionBudget${budgets.length === 1 ? '' : 's'} ${listed(budgets)}`;
  return `Let ${which} allow an eviction: run more replicas, make its pods healthy, or change the budget; or raise \`deadlines.drain\` in the policy if its operator needs more time`;
}

/** Returns a clause that says how the user tries the failed targets again. */
function retryOf(plan: ShownPlan, nodes: readonly string[]): Guidance {
  const { advice } = plan.texts;
  if (advice.retry === undefined) return advice.again(plan);
  const flag = planFlag(plan);
  const commands = nodes.map((name) => `refit retry ${name}${flag}`);
  const clause =
    nodes.length === 1
      ? `run: ${commands.join('')}`
      : `run for each of ${listed(nodes)}: refit retry NODE${flag}`;
  return { clause, commands };
}

function retrySkipped(plan: ShownPlan): string {
  return `refit retry --skipped${planFlag(plan)}`;
}

function skippedAgain(plan: ShownPlan): Guidance {
  const { advice } = plan.texts;
  if (advice.retry === undefined) return advice.again(plan);
  const command = retrySkipped(plan);
  return { clause: `run: ${command}`, commands: [command] };
}

function starting(
  situation: In<'CordonedByOthers' | 'WaveUnapproved' | 'Held' | 'WindowClosed' | 'Blackout'>,
  plan: ShownPlan,
  outcome: string,
): Advice {
  const command = startingCommand(plan, situation);
  return { clause: `Run: ${command}`, commands: [command], outcome };
}

function triedAgain(nodes: readonly string[]): string {
  return `${listed(nodes)} ${nodes.length === 1 ? 'is' : 'are'} tried again`;
}

function upgraded(nodes: readonly string[]): string {
  return `${listed(nodes)} ${nodes.length === 1 ? 'is' : 'are'} upgraded`;
}

function namesOf(names: readonly string[]): string {
  return listed([...new Set(names)], FEW);
}
