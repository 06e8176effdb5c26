/** What must be true of every surface, whatever people, hosts and leaders have done. */
import type { NodeRolloutStatus } from '../../src/api/refit/node-rollout.ts';
import type { PagePlan } from '../../src/cli/dashboard/state.ts';
import type { PlanJson, TargetJson } from '../../src/cli/status/json-form.ts';
import { kubernetesPartOf } from '../../src/versions/release-parts.ts';
import type { GroundTruth } from './ground-truth.ts';
import type { Lab } from './labs/lab.ts';
import type { Surfaces } from './surfaces.ts';

/** All surfaces at one time, beside the truth. */
export interface Witnessed {
  readonly surfaces: Surfaces;
  readonly truth: GroundTruth;
  /** The surfaces before the last operation; undefined at the begin. */
  readonly earlier: Surfaces | undefined;
  readonly lab: Lab;
  /** True at the end of a sequence, when nothing happens any more. */
  readonly isAtRest: boolean;
}

export interface TruthInvariant {
  readonly name: string;
  readonly sentence: string;
  /** Returns what is wrong: what a surface says, and what is true. */
  readonly judge: (witnessed: Witnessed) => readonly string[];
}

/** A plan as each surface shows it. */
interface ShownOnAll {
  readonly plan: PlanJson;
  readonly page: PagePlan | undefined;
  readonly record: NodeRolloutStatus | undefined;
}

function plansIn({ json, page, records }: Surfaces): ShownOnAll[] {
  return json.plans.map((plan) => ({
    plan,
    page: page.plans.find(({ key }) => key === keyOf(plan)),
    record: records.get(plan.uid),
  }));
}

function keyOf({ dialect, namespace = '', name }: PlanJson): string {
  return `${dialect}/${namespace}/${name}`;
}

interface RolePlace {
  readonly target: TargetJson;
  readonly wanted: string;
}

function targetsOf({ stages }: PlanJson): RolePlace[] {
  return stages.flatMap(({ version: wanted, targets }) =>
    targets.map((target) => ({ target, wanted })),
  );
}

/** A kubelet reports only the Kubernetes part of the version of some distributions. */
function isVersion(told: string, real: string | undefined): boolean {
  return real !== undefined && (told === real || told === kubernetesPartOf(real));
}

/** Returns what `judge` finds for each plan, with the title of the plan. */
function eachPlan(
  judge: (shown: ShownOnAll, witnessed: Witnessed) => readonly string[],
): TruthInvariant['judge'] {
  return (witnessed) =>
    plansIn(witnessed.surfaces).flatMap((shown) =>
      judge(shown, witnessed).map((found) => `${keyOf(shown.plan)}: ${found}`),
    );
}

const versionTold: TruthInvariant = {
  name: 'version-told-runs',
  sentence: 'A version that is told as running is the version that the host runs.',
  judge: eachPlan(({ plan }, { truth, lab }) =>
    targetsOf(plan).flatMap(({ target: { name, phase, runs, gone, asked, installed }, wanted }) => {
      if (gone === true || !truth.hosts.has(name)) return [];
      const real = truth.runs.get(name);
      const told = runs ?? installed ?? (phase === 'done' ? (asked ?? wanted) : undefined);
      return told === undefined || isVersion(lab.spelled(told), real)
        ? []
        : [`${name} (${phase}) is told to run ${told}, and runs ${real}`];
    }),
  ),
};

const upgradesTold: TruthInvariant = {
  name: 'upgrades-told-happened',
  sentence:
    'An Event that tells an upgrade or a roll-back names a version that this host has accepted.',
  judge: ({ surfaces, truth, lab }) =>
    surfaces.events.flatMap(({ kind, name, message }) => {
      const [, version] = /^(?:Upgraded|Rolled back) to (\S+)/.exec(message) ?? [];
      if (kind === 'Plan' || version === undefined) return [];
      const happened = truth.accepted.some(
        (each) => each.node === name && isVersion(lab.spelled(version), each.version),
      );
      return happened ? [] : [`an Event tells "${message}" of ${name}, which never accepted it`];
    }),
};

const completedIsTrue: TruthInvariant = {
  name: 'completed-is-true',
  sentence:
    'A plan is told as done, and its condition Completed is True, only if every target runs what the plan asks for; otherwise the exceptions are named.',
  judge: eachPlan(({ plan, record, page }, { surfaces, truth, lab, isAtRest }) => {
    const others = targetsOf(plan).filter(
      ({ target: { name }, wanted }) =>
        truth.runs.has(name) && !isVersion(lab.spelled(wanted), truth.runs.get(name)),
    );
    const unnamed = others.filter(({ target: { name } }) => !surfaces.text.includes(name));
    const wrong: string[] = [];
    if (plan.phase === 'done' && unnamed.length > 0)
      wrong.push(`done, and nothing names ${unnamed.map(({ target }) => target.name).join(', ')}`);
    const completed = record?.conditions?.find(({ type }) => type === 'Completed');
    const { message = '' } = completed ?? {};
    const exception = others.find(({ target: { name } }) => !message.includes(name));
    // The leader writes what people change after the end some seconds later.
    if (isAtRest && completed?.status === 'True' && exception !== undefined) {
      const { name } = exception.target;
      wrong.push(
        `the condition Completed says "${message}", but ${name} runs ${truth.runs.get(name)}`,
      );
    }
    if (page?.percent === 100 && targetsOf(plan).some(({ target }) => target.phase !== 'done'))
      wrong.push('the page shows 100 %, and a target is not done');
    return wrong;
  }),
};

const countsAddUp: TruthInvariant = {
  name: 'counts-add-up',
  sentence: 'The numbers of targets by state add up, and each surface tells the same numbers.',
  judge: eachPlan(({ plan, page, record }, { isAtRest }) => {
    const targets = targetsOf(plan);
    const done = targets.filter(({ target }) => target.phase === 'done').length;
    const wrong: string[] = [];
    if (page && (page.total !== targets.length || page.done !== done))
      wrong.push(
        `the page tells ${page.done} of ${page.total}, the JSON form ${done} of ${targets.length}`,
      );
    const { counts } = record ?? {};
    if (counts === undefined) return wrong;
    const { total, ...parts } = counts;
    const sum = Object.values(parts).reduce((all, each) => all + each, 0);
    if (sum !== total)
      wrong.push(`the NodeRollout counts ${sum} targets in states, and ${total} in all`);
    const [run] = record?.history ?? [];
    if (
      isAtRest &&
      run?.ended === undefined &&
      run &&
      run.counts.total !== total &&
      run.phase === 'running'
    )
      wrong.push(`the run of the NodeRollout has ${run.counts.total} targets, its status ${total}`);
    return wrong;
  }),
};

const sameTimes: TruthInvariant = {
  name: 'times-are-equal',
  sentence: 'The start and the end of a run are equal on every surface.',
  judge: eachPlan(({ plan, page, record }, { surfaces, truth, isAtRest }) => {
    const run = record?.history?.find(({ id, planUid }) => id === plan.id && planUid === plan.uid);
    if (!isAtRest || !truth.isLed || run === undefined || plan.started === undefined) return [];
    const wrong: string[] = [];
    const starts = {
      'status -o json': plan.started,
      page: page?.started,
      NodeRollout: run.started,
    };
    const ends = { 'status -o json': plan.ended, page: page?.ended, NodeRollout: run.ended };
    for (const [what, times] of [
      ['start', starts],
      ['end', ends],
    ] as const) {
      const told = new Set(Object.values(times).filter((time) => time !== undefined));
      if (told.size > 1) wrong.push(`the ${what} of the run differs: ${JSON.stringify(times)}`);
    }
    // The report of several plans has a table in place of these sentences.
    const isAlone = surfaces.json.plans.length === 1;
    if (isAlone && !surfaces.report.includes(`tarted at ${plan.started}`))
      wrong.push(`the report does not tell the start ${plan.started}`);
    return wrong;
  }),
};

const ownCauses: TruthInvariant = {
  name: 'causes-are-of-their-node',
  sentence:
    'The cause that is told for a failed node is the cause of this node, in the words of its host if its host has failed.',
  judge: eachPlan(({ plan, record }, { truth }) => {
    const told = [
      ...targetsOf(plan).flatMap(({ target: { name, phase, failure } }) =>
        phase === 'failed' && failure !== undefined ? [{ name, failure }] : [],
      ),
      ...(record?.history?.[0]?.failures ?? []).map(({ node: name, message: failure = '' }) => ({
        name,
        failure,
      })),
    ];
    return told.flatMap(({ name, failure }) => {
      const others = [...truth.hosts].filter((host) => host !== name);
      const named = others.find((host) =>
        new RegExp(`\\b${RegExp.escape(host)}\\b(?!\\.)`).test(failure),
      );
      const why = truth.whyFailed(name);
      const isOfOther = named !== undefined && !(why?.includes(named) ?? false);
      const isOfOthersHost = truth.failures.some(
        (each) => each.node !== name && each.why !== why && failure.includes(each.why),
      );
      return isOfOther || isOfOthersHost
        ? [`${name} failed with the cause of another node: "${failure}"`]
        : [];
    });
  }),
};

const noTimeLeft: TruthInvariant = {
  name: 'no-time-left-while-nothing-moves',
  sentence: 'No surface tells when a plan ends while no leader runs, and while the plan is paused.',
  judge: eachPlan(({ plan, page }, { surfaces }) => {
    const isStill = plan.leaderless === true || plan.paused !== undefined;
    if (!isStill || surfaces.json.plans.length > 1) return [];
    const wrong = page?.expected === undefined ? [] : ['the page tells an expected end'];
    const lines = [surfaces.text, surfaces.why].flatMap((text) => text.split('\n'));
    const line = lines.find((each) => /\babout \d.* left\b|expected to end/.test(each));
    return line === undefined ? wrong : [...wrong, `a text tells "${line.trim()}"`];
  }),
};

const rollBackNamed: TruthInvariant = {
  name: 'a-roll-back-is-no-upgrade',
  sentence:
    'A roll-back is told as a roll-back, and no message and no Event since its begin calls its work an upgrade.',
  judge: eachPlan(({ plan }, { surfaces, truth }) => {
    if (!truth.rollBacks.has(plan.uid)) return [];
    const wrong =
      plan.rollsBackRun === undefined ? ['the JSON form does not say that it is a roll-back'] : [];
    const since = truth.rollBacks.get(plan.uid) ?? 0;
    const events = surfaces.events.map(({ last, message }) => `${last} ${message}`);
    // The message begins with its time.
    const message = [...surfaces.messages, ...events].find(
      (each) => Date.parse(each.split(' ')[0] ?? '') >= since && UPGRADE.test(withoutNames(each)),
    );
    return message === undefined ? wrong : [...wrong, `the leader told "${message}"`];
  }),
};

/** Returns the text without the names of plans, because their namespace may be called system-upgrade. */
function withoutNames(text: string): string {
  return text.replaceAll(/\S*\/\S*/g, '');
}

const UPGRADE = /\bupgrad(?:e|es|ed|ing)\b/i;

const messagesTrue: TruthInvariant = {
  name: 'messages-were-true-when-sent',
  sentence:
    'A message that says that a plan is done was sent when every target ran the version; each run is told to start once.',
  judge: ({ surfaces, earlier, truth, lab }) => {
    const fresh = surfaces.messages.slice(earlier?.messages.length ?? 0);
    const wrong = fresh.flatMap((message) => {
      const [, version, done, total] =
        /the (?:upgrade|roll-back) to (\S+) is done; (\d+) of (\d+)/.exec(message) ?? [];
      if (version === undefined || done !== total) return [];
      const wasThere = [...truth.hosts].filter((host) =>
        truth.everRan(host).some((each) => isVersion(lab.spelled(version), each)),
      );
      return wasThere.length >= Number(done)
        ? []
        : [`"${message}", but only ${wasThere.join(', ')} ran it`];
    });
    const starts = surfaces.messages.filter((each) => each.includes(' has started')).length;
    return starts > truth.runsAdmitted
      ? [
          ...wrong,
          `${starts} messages tell that a run has started, and leaders admitted ${truth.runsAdmitted}`,
        ]
      : wrong;
  },
};

const surfacesAgree: TruthInvariant = {
  name: 'surfaces-agree',
  sentence:
    'Texts, JSON form, page and NodeRollout name the same phase, failed nodes, hooks and waits.',
  judge: eachPlan(({ plan, page, record }, { surfaces, truth, isAtRest }) => {
    const failed = targetsOf(plan)
      .filter(({ target }) => target.phase === 'failed')
      .map(({ target }) => target.name);
    const onPage =
      page?.nodes.filter(({ phase }) => phase === 'failed').map(({ name }) => name) ?? [];
    const wrong: string[] = [];
    if (page && onPage.toSorted().join() !== failed.toSorted().join())
      wrong.push(
        `failed on the page: ${onPage.join(', ')}; in the JSON form: ${failed.join(', ')}`,
      );
    for (const name of failed)
      if (!surfaces.text.split('\n').some((line) => line.includes(name) && line.includes('failed')))
        wrong.push(`the text does not tell that ${name} failed`);
    if (page && page.phase !== plan.phase)
      wrong.push(`phase on the page ${page.phase}, in the JSON form ${plan.phase}`);
    for (const { hook, state } of plan.hooks ?? [])
      if (state === 'Failed' && !surfaces.why.includes(hook))
        wrong.push(`why does not name the failed hook ${hook}`);
    for (const { reason } of plan.waits.filter(({ target }) => target === undefined))
      if (!surfaces.why.includes(reason.message))
        wrong.push(`why does not tell the wait "${reason.message}"`);
    if (!isAtRest || !truth.isLed || !record) return wrong;
    const recorded = new Set(record.history?.[0]?.failures?.map(({ node }) => node));
    const open = failed.filter((name) => !recorded.has(name));
    if (record.counts?.failed !== failed.length && open.length > 0)
      wrong.push(`the NodeRollout does not name the failed ${open.join(', ')}`);
    if (record.phase !== plan.phase)
      wrong.push(`phase in the NodeRollout ${record.phase}, in the JSON form ${plan.phase}`);
    const waiting = record.conditions?.find(({ type }) => type === 'Waiting');
    const isWaiting = plan.waits.length > 0 || plan.paused !== undefined;
    if (waiting?.status === 'True' && !isWaiting)
      wrong.push(`the NodeRollout waits (${waiting.message}), the JSON form names no wait`);
    return wrong;
  }),
};

const waitsExist: TruthInvariant = {
  name: 'waits-are-for-what-exists',
  sentence: 'Only an open plan waits, and each wait is about a node of the plan that exists.',
  judge: eachPlan(({ plan, record }, { truth, isAtRest }) => {
    const names = new Set(targetsOf(plan).map(({ target }) => target.name));
    const wrong = plan.waits.flatMap(({ target, reason }) =>
      target === undefined || (names.has(target) && !truth.lost.has(target))
        ? []
        : [`waits for ${target}, which does not exist: ${reason.message}`],
    );
    const waiting = record?.conditions?.find(({ type }) => type === 'Waiting');
    const isOver = ['done', 'failed', 'empty', 'invalid', 'incomplete'].includes(plan.phase);
    if (isAtRest && truth.isLed && isOver && waiting?.status === 'True')
      wrong.push(`the plan is ${plan.phase}, and its NodeRollout waits: ${waiting.message}`);
    return wrong;
  }),
};

const runsListed: TruthInvariant = {
  name: 'runs-are-listed-if-admitted',
  sentence: 'A run is listed exactly if a leader has admitted it.',
  judge: ({ surfaces: { records }, truth, isAtRest }) =>
    [...records].flatMap(([uid, { history = [] }]) => {
      const listed = history.filter(({ planUid = uid }) => planUid === uid).length;
      const admitted = truth.admitted.get(uid) ?? 0;
      const isKnown = truth.isLed && isAtRest;
      if (listed > admitted) return [`${listed} runs of ${uid} are listed, ${admitted} admitted`];
      return isKnown && listed < Math.min(admitted, 1) ? [`no run of ${uid} is listed`] : [];
    }),
};

/** Words that no person should ever read. */
const MACHINE = /\bundefined\b|\bNaN\b|\[object |Invalid Date|\bnull\b|    at .*\.ts:\d/;

const readable: TruthInvariant = {
  name: 'texts-are-for-people',
  sentence: 'No text has the words of a programming language for a value that is missing.',
  judge: ({ surfaces: { text, why, history, report, messages, events, policies } }) =>
    [
      text,
      why,
      history,
      report,
      ...messages,
      ...events.map(({ message }) => message),
      ...policies,
    ].flatMap((each) => {
      const line = each.split('\n').find((one) => MACHINE.test(one));
      return line === undefined ? [] : [`"${line.trim()}"`];
    }),
};

export const SEQUENCE_INVARIANTS: readonly TruthInvariant[] = [
  runsListed,
  versionTold,
  upgradesTold,
  completedIsTrue,
  countsAddUp,
  sameTimes,
  ownCauses,
  noTimeLeft,
  rollBackNamed,
  messagesTrue,
  surfacesAgree,
  waitsExist,
  readable,
];
