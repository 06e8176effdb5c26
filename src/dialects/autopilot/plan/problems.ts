/**
 * Finds the errors in a Plan that its schema does not find. Each problem names the field, the wrong value and a correct
 * value.
 */
import * as api from '../../../api/autopilot/plan.ts';
import { because, type Reason } from '../../../engine/model/reasons.ts';
import { isFinal, type Role, type RolloutPhase } from '../../../engine/model/rollout.ts';
import { roomForTargets } from '../../../engine/model/status-shards.ts';
import {
  type Matcher,
  parseFieldSelector,
  parseLabelSelector,
  SelectorError,
} from '../../../kube/selectors.ts';
import { parseJson } from '../../../util/json.ts';
import { onceForEach } from '../../../util/memo.ts';
import { printable } from '../../../util/printable.ts';
import { printableUrl } from '../../../util/printable-url.ts';
import { firstRepeated } from '../../../util/repeated.ts';
import { parseVersion, withPlusSign } from '../../../util/version.ts';
import { FIELDS } from './autopilot-signal.ts';
import { phaseOfPlan } from './states.ts';

const VERSION = 'v1.36.3+k0s.0';

/*
 * These are limits of Refit; the original has no such limits. They apply to a new plan only. If a plan has a record,
 * another leader or release has accepted it, so the plan continues. docs/guides/policy/original.md lists the limits.
 */
/**
 * The least number of bytes that a plan must leave free in its object for the status. The status lists one target in
 * progress and some failed targets.
 */
const LEAST_ROOM = 2 ** 14;
/** The most commands of a plan. The number is limited because each command has an entry in the status. */
export const MOST_COMMANDS = 100;
/**
 * The most characters of the plan's id. The length is limited because each signal is an annotation that contains the
 * id, and all annotations of an object together may have 256 KiB.
 */
const LONGEST_ID = 10_000;
/**
 * The most characters of a node's name. The length is limited because one StatusShard contains the names of 200 nodes.
 */
const LONGEST_NAME = 253;
/** The most characters of a selector. The length is limited because each turn parses the selector. */
const LONGEST_SELECTOR = 2 ** 16;
/**
 * The most characters of a value that the text of a problem quotes. The length is limited because the text must fit
 * into the status.
 */
const MOST_SHOWN = 500;

/**
 * Returns the problems of a Plan. They are computed once for each version of the Plan, because the lists of a Plan may
 * be long and every turn needs the problems.
 */
export const problemsOf = onceForEach((plan: api.Plan): readonly Reason[] => {
  const { metadata, spec, status } = plan;
  const { name } = metadata;
  const { length } = spec.commands;
  const started = status?.commands.length || length;
  const phase = phaseOfPlan(status?.state);
  const changed = `is the number of commands, but the plan started with ${started}`;
  return [
    ...problemIf(
      name !== api.PLAN_NAME,
      'metadata.name',
      name,
      'is not supported',
      `use "${api.PLAN_NAME}"`,
    ),
    ...problemIf(spec.id === '', 'spec.id', '', 'is empty', 'use for example 2026-11-20'),
    ...(phase === 'new' ? sizeProblems(plan) : []),
    ...problemIf(length === 0, 'spec.commands', [], 'is empty', 'add a command'),
    ...problemIf(
      started !== length,
      'spec.commands',
      length,
      changed,
      'restore them, or create a new Plan',
    ),
    ...spec.commands.flatMap((command, index) =>
      commandProblems(command, `spec.commands[${index}]`, phase),
    ),
  ];
});

/** Returns a problem for each limit that the plan as a whole exceeds. */
function sizeProblems(plan: api.Plan): Reason[] {
  const { id = '', commands } = plan.spec;
  const room = roomForTargets(plan);
  return [
    ...problemIf(
      id.length > LONGEST_ID,
      'spec.id',
      id.length,
      'is too many characters',
      `use at most ${LONGEST_ID}`,
    ),
    ...problemIf(
      commands.length > MOST_COMMANDS,
      'spec.commands',
      commands.length,
      'is too many commands',
      `use at most ${MOST_COMMANDS}`,
    ),
    ...problemIf(
      room < LEAST_ROOM,
      'spec.commands',
      Buffer.byteLength(JSON.stringify(commands)),
      'bytes of commands, together with the metadata, leave no room for a status in the object',
      `make it ${LEAST_ROOM - room} bytes smaller: use a selector instead of names, or remove annotations`,
    ),
  ];
}

/**
 * Returns the beginning of the text of a problem, which has the form `<field>: <value>`; undefined if another leader
 * wrote the text in another form. The rest of the text is left out, and a long value is cut, because another release of
 * Refit may use other words and shorten values in another way.
 */
export function subjectOf(text: string): string | undefined {
  const [, field, shown] =
    /^((?:metadata|spec)\.\S+): ("(?:[^"\\]|\\.)*"|\S+)/.exec(printable(text)) ?? [];
  if (field === undefined || shown === undefined) return undefined;
  const value = parseJson(shown);
  return `${field}: ${typeof value === 'string' ? JSON.stringify(beginning(value)) : shown}`;
}

function commandProblems(
  { k0supdate, airgapupdate }: api.PlanCommand,
  path: string,
  phase: RolloutPhase,
): Reason[] {
  if (!k0supdate && !airgapupdate)
    return [problem(path, {}, 'has no update', 'add k0supdate or airgapupdate')];
  return [
    ...(airgapupdate ? bundleProblems(airgapupdate, `${path}.airgapupdate`, phase) : []),
    ...(k0supdate ? updateProblems(k0supdate, `${path}.k0supdate`, phase) : []),
  ];
}

function bundleProblems(
  { version, platforms, workers }: api.AirgapUpdate,
  at: string,
  phase: RolloutPhase,
): Reason[] {
  return [
    ...problemIf(
      version === '',
      `${at}.version`,
      version,
      'is empty',
      `use for example ${VERSION}`,
    ),
    ...platformProblems(platforms, `${at}.platforms`),
    ...targetProblems(workers, 'worker', `${at}.workers`, phase === 'new'),
  ];
}

function updateProblems(update: api.K0sUpdate, at: string, phase: RolloutPhase): Reason[] {
  const isNew = phase === 'new';
  const { controllers, workers } = update.targets;
  return [
    ...versionProblems(update, at, phase),
    ...platformProblems(update.platforms, `${at}.platforms`),
    ...targetProblems(controllers, 'controller', `${at}.targets.controllers`, isNew),
    ...targetProblems(workers, 'worker', `${at}.targets.workers`, isNew),
  ];
}

/**
 * Returns the problems of a version. The version must have the form in which nodes report their version. This form is
 * required before the Plan starts, and while the Plan waits for nodes to report the version. It is not required for a
 * forced update in progress, which waits for no report. It is not required for an ended Plan either, because the leader
 * that ran the Plan accepted the version.
 *
 * Every release of k0s reports a build, such as `+k0s.0`. A node never reports a version without it, so k0s's own agent
 * leaves the node cordoned for ever. A forced update compares no versions, so it may name such a version.
 */
function versionProblems(
  { version, forceupdate = false }: api.K0sUpdate,
  at: string,
  phase: RolloutPhase,
): Reason[] {
  const parsed = parseVersion(version);
  if (!parsed)
    return [problem(`${at}.version`, version, 'is not a version', `use for example ${VERSION}`)];
  if (phase === 'new' && !forceupdate && parsed.build === '')
    return [
      problem(
        `${at}.version`,
        version,
        'has no build, so no node can report it',
        `use the whole version of the release, for example ${version.replace(/^v?/, 'v')}+k0s.0`,
      ),
    ];
  const reported = withPlusSign(version.replace(/^v?/, 'v'));
  const isStartedByForce = phase === 'running' && forceupdate;
  const isOver = phase !== 'invalid' && isFinal({ phase });
  if (version === reported || isStartedByForce || isOver) return [];
  return [
    problem(`${at}.version`, version, 'is not a version that a node can report', `use ${reported}`),
  ];
}

function platformProblems(platforms: api.K0sUpdate['platforms'], at: string): Reason[] {
  const found = Object.entries(platforms);
  if (found.length === 0)
    return [problem(at, platforms, 'is empty', 'add a platform, for example linux-amd64')];
  return found.flatMap(([name, { url, sha256 = '' }]) => {
    const field = `${at}.${name}`;
    const isHash = sha256 === '' || /^[0-9a-fA-F]{64}$/.test(sha256);
    const digits = `use 64 hexadecimal digits, not ${sha256.length}`;
    const example = 'use for example https://example.com/k0s';
    return [
      ...problemIf(
        !isHttp(url),
        `${field}.url`,
        printableUrl(url),
        'is not a URL with http or https',
        example,
      ),
      ...problemIf(!isHash, `${field}.sha256`, sha256, 'is not a SHA-256', digits),
    ];
  });
}

/**
 * Returns true for a URL that the agents of the original can fetch. The class URL accepts more URLs, because it repairs
 * some wrong URLs.
 */
function isHttp(url: string): boolean {
  return /^https?:\/\/[^\s/]/i.test(url) && !/\s/.test(url) && URL.canParse(url);
}

/**
 * Returns the problems of a target specification. `isNew` is true for a new plan, because the limits of Refit apply
 * only to new plans.
 */
export function targetProblems(
  spec: api.TargetSpec | undefined,
  role: Role,
  at: string,
  isNew = true,
): Reason[] {
  if (!spec) return [];
  const { concurrent = 1 } = spec.limits ?? {};
  const { nodes: listed = [] } = spec.discovery.static ?? {};
  const twice = firstRepeated(listed);
  const tooLong = isNew ? listed.find((each) => each.length > LONGEST_NAME) : undefined;
  const nodes = `${at}.discovery.static.nodes`;
  const { labels = '', fields = '' } = spec.discovery.selector ?? {};
  const selector = `${at}.discovery.selector`;
  const parseFields = (text: string): Matcher => parseFieldSelector(text, FIELDS[role]);
  const sizeOf = (field: string, text: string): Reason[] =>
    problemIf(
      isNew && text.length > LONGEST_SELECTOR,
      field,
      text.length,
      'is too many characters',
      `use at most ${LONGEST_SELECTOR}`,
    );
  return [
    ...problemIf(
      concurrent < 1,
      `${at}.limits.concurrent`,
      concurrent,
      'is less than 1',
      'use 1 or more',
    ),
    ...problemIf(listed.includes(''), nodes, '', 'is no name', 'name a node'),
    ...problemIf(
      tooLong !== undefined,
      nodes,
      tooLong,
      `has ${tooLong?.length} characters, so it names no node`,
      `use at most ${LONGEST_NAME}`,
    ),
    ...problemIf(twice !== undefined, nodes, twice, 'is listed twice', 'list each node once'),
    ...sizeOf(`${selector}.labels`, labels),
    ...selectorProblems(parseLabelSelector, `${selector}.labels`, labels, 'pool=blue'),
    ...sizeOf(`${selector}.fields`, fields),
    ...selectorProblems(parseFields, `${selector}.fields`, fields, 'metadata.name=w1'),
  ];
}

function selectorProblems(
  parse: (text: string) => Matcher,
  field: string,
  text: string,
  example: string,
): Reason[] {
  // The selector of a recorded plan may be longer than the limit. Then it is not checked, because the targets of such a
  // plan are recorded, so Refit does not use its selector.
  if (text.length > LONGEST_SELECTOR) return [];
  try {
    parse(text);
    return [];
  } catch (error) {
    if (!(error instanceof SelectorError)) throw error;
    const kind = field.endsWith('labels') ? 'label' : 'field';
    return [
      problem(
        field,
        text,
        `is not a ${kind} selector (${beginning(error.message)})`,
        `use for example ${example}`,
      ),
    ];
  }
}

function problemIf(isWrong: boolean, ...parts: Parameters<typeof problem>): Reason[] {
  return isWrong ? [problem(...parts)] : [];
}

function problem(field: string, found: unknown, wrong: string, fix: string): Reason {
  const shown = JSON.stringify(typeof found === 'string' ? beginning(found) : found);
  return because('InvalidPlan', `${field}: ${shown} ${wrong}; ${fix}`);
}

function beginning(text: string): string {
  return text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}…` : text;
}
