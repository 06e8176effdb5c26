/** Asks the real API server which verbs a user may use on which resources. */
import type { RunResult } from '../../tools/controlplane/run.ts';

/** kubectl as the user in question. */
type Kubectl = (args: readonly string[], input: string) => Promise<RunResult>;

const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'];

/** `group/resource[/subresource]`, optionally with `@namespace` and `=name`; or a path that is no resource. */
export type Target = string;

/** One line for each review, in the order in which they were asked. */
const ANSWER = 'jsonpath={.status.allowed}{"\\n"}';

/** The verbs that the user of `kubectl` may use on each target; `''` for none. */
export async function reviewAccess(kubectl: Kubectl, targets: readonly Target[]): Promise<Record<Target, string>> {
  const questions = targets.flatMap((target) => VERBS.map((verb) => ({ target, verb })));
  const items = questions.map(({ target, verb }) => ({
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: attributesOf(target, verb),
  }));
  const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
  const { ok, stdout, stderr } = await kubectl(['create', '--validate=ignore', '-f', '-', '-o', ANSWER], list);
  if (!ok) throw new Error(stderr);
  const answers = stdout.trimEnd().split('\n');
  if (answers.length !== questions.length)
    throw new Error(`${answers.length} answers to ${questions.length} questions`);
  const allowed = (target: Target): string[] =>
    questions.flatMap((question, i) => (question.target === target && answers[i] === 'true' ? [question.verb] : []));
  return Object.fromEntries(targets.map((target) => [target, allowed(target).join(' ')]));
}

function attributesOf(target: Target, verb: string): Record<string, unknown> {
  if (target.startsWith('/')) return { nonResourceAttributes: { path: target, verb } };
  const [, group, resource, subresource, namespace, name] =
    /^([^/]*)\/([^/@=]+)(?:\/([^@=]+))?(?:@([^=]+))?(?:=(.+))?$/.exec(target) ?? [];
  return { resourceAttributes: { group: group === 'core' ? '' : group, resource, subresource, namespace, name, verb } };
}
