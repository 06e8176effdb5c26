/** Owns what can be wrong with a Plan beyond its schema: each problem names the field, what was found and what would be right. */
import type { AirgapUpdate, K0sUpdate, Plan, PlanCommand } from '../../api/autopilot/plan.ts';
import type { TargetSpec } from '../../api/autopilot/target.ts';
import { because, type Reason } from '../../engine/model/reasons.ts';
import type { Role } from '../../engine/model/recorded.ts';
import { type Matcher, parseFieldSelector, parseLabelSelector, SelectorError } from '../../kube/selectors.ts';
import { parseVersion } from '../../util/version.ts';
import { FIELDS } from './discovery.ts';

/** The only name under which the original carries a plan out. */
export const PLAN_NAME = 'autopilot';

export function problemsOf({ metadata, spec, status }: Plan): Reason[] {
  const problems: Reason[] = [];
  if (metadata.name !== PLAN_NAME) problems.push(problem('metadata.name', metadata.name, `must be "${PLAN_NAME}"`));
  if (spec.id === '') problems.push(problem('spec.id', '', 'must name this run, such as "2026-11-20"'));
  if (spec.commands.length === 0) problems.push(problem('spec.commands', spec.commands, 'must hold a command'));
  const started = status?.commands.length ?? 0;
  if (started > 0 && started !== spec.commands.length) {
    const wanted = `must stay ${started}, as when the plan started`;
    problems.push(problem('the number of spec.commands', spec.commands.length, wanted));
  }
  return [
    ...problems,
    ...spec.commands.flatMap((command, index) => commandProblems(command, `spec.commands[${index}]`)),
  ];
}

function commandProblems({ k0supdate, airgapupdate }: PlanCommand, path: string): Reason[] {
  if (!k0supdate && !airgapupdate) return [problem(path, 'no command', 'must hold a k0supdate or an airgapupdate')];
  return [
    ...(airgapupdate ? bundleProblems(airgapupdate, `${path}.airgapupdate`) : []),
    ...(k0supdate ? updateProblems(k0supdate, `${path}.k0supdate`) : []),
  ];
}

function bundleProblems({ version, platforms, workers }: AirgapUpdate, at: string): Reason[] {
  return [
    ...(version === '' ? [problem(`${at}.version`, version, 'must tell which version the bundle is for')] : []),
    ...platformProblems(platforms, `${at}.platforms`),
    ...targetProblems(workers, 'worker', `${at}.workers`),
  ];
}

function updateProblems(update: K0sUpdate, at: string): Reason[] {
  const { controllers, workers } = update.targets;
  return [
    ...versionProblems(update, at),
    ...platformProblems(update.platforms, `${at}.platforms`),
    ...targetProblems(controllers, 'controller', `${at}.targets.controllers`),
    ...targetProblems(workers, 'worker', `${at}.targets.workers`),
  ];
}

function versionProblems({ version }: K0sUpdate, at: string): Reason[] {
  if (parseVersion(version)) return [];
  return [problem(`${at}.version`, version, 'must be a version such as "v1.36.3+k0s.0"')];
}

function platformProblems(platforms: K0sUpdate['platforms'], at: string): Reason[] {
  const found = Object.entries(platforms);
  if (found.length === 0) return [problem(at, platforms, 'must hold a platform such as "linux-amd64"')];
  return found.flatMap(([name, { url, sha256 }]) => {
    const problems: Reason[] = [];
    if (!isHttp(url)) problems.push(problem(`${at}.${name}.url`, url, 'must be a URL with http or https'));
    if (sha256 && !/^[0-9a-fA-F]{64}$/.test(sha256)) {
      problems.push(problem(`${at}.${name}.sha256`, sha256, `must be 64 hexadecimal digits, not ${sha256.length}`));
    }
    return problems;
  });
}

function targetProblems(spec: TargetSpec | undefined, role: Role, at: string): Reason[] {
  if (!spec) return [];
  const problems: Reason[] = [];
  const concurrent = spec.limits?.concurrent ?? 1;
  if (concurrent < 1) problems.push(problem(`${at}.limits.concurrent`, concurrent, 'must be 1 or more'));
  const names = spec.discovery.static?.nodes ?? [];
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) {
    problems.push(
      problem(`${at}.discovery.static.nodes`, twice, 'must name every node once, and this one stands twice'),
    );
  }
  const { labels = '', fields = '' } = spec.discovery.selector ?? {};
  return [
    ...problems,
    ...selectorProblems(
      parseLabelSelector,
      labels,
      `${at}.discovery.selector.labels`,
      'a label selector such as "pool=blue"',
    ),
    ...selectorProblems(
      (text) => parseFieldSelector(text, FIELDS[role]),
      fields,
      `${at}.discovery.selector.fields`,
      'a field selector such as "metadata.name=w1"',
    ),
  ];
}

function selectorProblems(parse: (text: string) => Matcher, text: string, field: string, wanted: string): Reason[] {
  try {
    parse(text);
    return [];
  } catch (error) {
    if (!(error instanceof SelectorError)) throw error;
    return [problem(field, text, `must be ${wanted} (${error.message})`)];
  }
}

/** Stricter than the URL class, which mends what original agents then cannot fetch. */
function isHttp(url: string): boolean {
  return /^https?:\/\/[^\s/]/i.test(url) && !/\s/.test(url) && URL.canParse(url);
}

function problem(field: string, found: unknown, wanted: string): Reason {
  return because('InvalidPlan', `${field} ${wanted}; found ${JSON.stringify(found)}`);
}
