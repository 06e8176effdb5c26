/**
 * Asks the real API server which verbs a user may use on which resources. It asks for each verb separately, or for the
 * RBAC rules of the user.
 */
import type { RunResult } from '../../tools/controlplane/run.ts';

/** Runs kubectl as the user whose rights are reviewed. */
type Kubectl = (args: readonly string[], input: string) => Promise<RunResult>;

const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'];

/** `group/resource[/subresource]`, optionally with `@namespace` and `=name`; or a path that is no resource. */
export type Target = string;

/** Prints one line for each review, in the order of the requests. */
const ANSWER = 'jsonpath={.status.allowed}{"\\n"}';

/** The verbs that the user of `kubectl` may use on each target; `''` for none. */
export async function reviewAccess(
  kubectl: Kubectl,
  targets: readonly Target[],
): Promise<Record<Target, string>> {
  const questions = targets.flatMap((target) => VERBS.map((verb) => ({ target, verb })));
  const items = questions.map(({ target, verb }) => ({
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: attributesOf(target, verb),
  }));
  const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
  const { ok, stdout, stderr } = await kubectl(
    ['create', '--validate=ignore', '-f', '-', '-o', ANSWER],
    list,
  );
  if (!ok) throw new Error(stderr);
  const answers = stdout.trimEnd().split('\n');
  if (answers.length !== questions.length)
    throw new Error(`${answers.length} answers to ${questions.length} questions`);
  const allowed = (target: Target): string[] =>
    questions.flatMap((question, i) =>
      question.target === target && answers[i] === 'true' ? [question.verb] : [],
    );
  return Object.fromEntries(targets.map((target) => [target, allowed(target).join(' ')]));
}

function attributesOf(target: Target, verb: string): Record<string, unknown> {
  if (target.startsWith('/')) return { nonResourceAttributes: { path: target, verb } };
  return { resourceAttributes: { ...partsOf(target), verb } };
}

function partsOf(target: Target) {
  const [, group = '', resource = '', subresource, namespace, name] =
    /^([^/]*)\/([^/@=]+)(?:\/([^@=]+))?(?:@([^=]+))?(?:=(.+))?$/.exec(target) ?? [];
  return { group: group === 'core' ? '' : group, resource, subresource, namespace, name };
}

interface Rule {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
}

interface Rules {
  readonly resourceRules: readonly Rule[];
  readonly nonResourceRules: readonly Rule[];
}

/** A namespace that contains no Roles. So a right that applies in this namespace applies in the whole cluster. */
const NOWHERE = 'access-review-nowhere';

/**
 * Returns the same as `reviewAccess`, with one request for each namespace. It works only for rights that RBAC alone
 * decides. So it does not work for the users of nodes.
 */
export async function accessByRules(
  kubectl: Kubectl,
  targets: readonly Target[],
): Promise<Record<Target, string>> {
  const placeOf = (target: Target): string =>
    target.startsWith('/') ? NOWHERE : (partsOf(target).namespace ?? NOWHERE);
  const namespaces = [...new Set(targets.map(placeOf))];
  const items = namespaces.map((namespace) => ({
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectRulesReview',
    spec: { namespace },
  }));
  const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
  const { ok, stdout, stderr } = await kubectl(
    ['create', '--validate=ignore', '-f', '-', '-o', RULES],
    list,
  );
  if (!ok) throw new Error(stderr);
  const answers = stdout.trimEnd().split('\n');
  const rules = new Map(
    namespaces.map((namespace, i) => [namespace, JSON.parse(answers[i] ?? '') as Rules]),
  );
  return Object.fromEntries(
    targets.map((target) => [target, verbsIn(rules.get(placeOf(target)), target)]),
  );
}

const RULES = 'jsonpath={.status}{"\\n"}';

function verbsIn(rules: Rules | undefined, target: Target): string {
  const matching = target.startsWith('/')
    ? rules?.nonResourceRules.filter(({ nonResourceURLs = [] }) =>
        nonResourceURLs.some((url) => isPath(url, target)),
      )
    : rules?.resourceRules.filter((rule) => isResource(rule, partsOf(target)));
  const verbs = new Set(matching?.flatMap((rule) => rule.verbs));
  return VERBS.filter((verb) => verbs.has(verb) || verbs.has('*')).join(' ');
}

const isPath = (url: string, path: string): boolean =>
  url.endsWith('*') ? path.startsWith(url.slice(0, -1)) : url === path;

function isResource(
  rule: Rule,
  { group, resource, subresource, name }: ReturnType<typeof partsOf>,
): boolean {
  const { apiGroups = [], resources = [], resourceNames = [] } = rule;
  const whole =
    subresource === undefined ? [resource] : [`${resource}/${subresource}`, `*/${subresource}`];
  const hasName =
    resourceNames.length === 0 || (name !== undefined && resourceNames.includes(name));
  const has = (all: readonly string[], ...wanted: string[]) =>
    ['*', ...wanted].some((each) => all.includes(each));
  return hasName && has(apiGroups, group) && has(resources, ...whole);
}
