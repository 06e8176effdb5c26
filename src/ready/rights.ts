/** Checks whether the processes of Refit in the cluster have the rights that their manifests give them. */
import { type KubeObject, type Pod, pods } from '../kube/resources.ts';
import { counted, listed } from '../util/phrases.ts';
import { semaphore } from '../util/waits.ts';
import type { AccessQuestion } from './access.ts';
import type { Asking } from './asking.ts';
import type { Check } from './context.ts';
import type { FoundBy } from './finding.ts';
import { accountOf, isOwn, slimPod } from './pods.ts';

/** A rule of a Role or a ClusterRole. */
export interface RightsRule {
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
  readonly verbs: readonly string[];
}

/** The rights of a component of Refit. */
export interface ComponentRights {
  /** The name of the component in the label `app.kubernetes.io/component` of its pods. */
  readonly component: string;
  /** The ServiceAccount to which the manifests bind the rights. The cluster may use another one. */
  readonly account: string;
  /** The namespace of the component in the manifests. The cluster may use another one. */
  readonly namespace: string;
  /** The command that prints the manifests with the rights. */
  readonly command: string;
  /** The manifests of the component. */
  readonly manifests: readonly KubeObject[];
}

interface Role extends KubeObject {
  readonly rules?: readonly RightsRule[];
}

interface Binding extends KubeObject {
  readonly roleRef?: { readonly kind: string; readonly name: string };
  readonly subjects?: readonly { readonly kind: string; readonly name: string }[];
}

const AT_ONCE = 8;
const MOST_NAMED = 6;

/** Returns a check of the rights of these components, as far as they run as pods. */
export function rightsCheck(components: readonly ComponentRights[]): Check {
  return async ({ list, allows }) => {
    const asked = await list(pods, { slim: slimPod });
    // Other checks say already that pods cannot be read.
    if (asked.kind === 'unknown') return [];
    const own = asked.value.filter(({ metadata }) => isOwn(metadata));
    const found = await Promise.all(
      components.map(async (each) => await componentFindings(each, own, allows)),
    );
    return found.flat();
  };
}

async function componentFindings(
  rights: ComponentRights,
  own: readonly Pod[],
  allows: Asking['allows'],
): Promise<FoundBy[]> {
  const { component, command } = rights;
  const running = own.filter(
    ({ metadata: { labels } }) => labels?.['app.kubernetes.io/component'] === component,
  );
  const accounts = new Map(
    running.map(({ metadata: { namespace = '' }, spec = {} }) => {
      const name = accountOf(spec) ?? 'default';
      return [`${namespace}:${name}`, { namespace, name }];
    }),
  );
  const withSlot = semaphore(AT_ONCE);
  const found = await Promise.all(
    [...accounts].map(async ([key, { namespace, name }]) => {
      const asked = await Promise.all(
        accessesIn(rights, namespace).map(async (access) => ({
          access,
          answer: await withSlot(async () => await allows(`system:serviceaccount:${key}`, access)),
        })),
      );
      return accountFindings(`ServiceAccount ${namespace}/${name}`, asked, command);
    }),
  );
  return found.flat();
}

interface AskedAccess {
  readonly access: AccessQuestion;
  readonly answer: Awaited<ReturnType<Asking['allows']>>;
}

function accountFindings(
  object: string,
  asked: readonly AskedAccess[],
  command: string,
): FoundBy[] {
  const unread = asked.find(({ answer }) => answer.kind === 'unknown')?.answer;
  if (unread?.kind === 'unknown')
    return [{ state: 'unknown', object, message: `whether it has its rights: ${unread.why}` }];
  const missing = asked.flatMap(({ access, answer }) =>
    answer.kind === 'answer' && !answer.value ? describeAccess(access) : [],
  );
  if (missing.length === 0) return [];
  return [
    {
      state: 'blocker',
      object,
      message: `it lacks ${counted(missing.length, 'right')} that this release needs: ${listed(missing, MOST_NAMED)}`,
      cure: `apply what \`${command}\` prints`,
    },
  ];
}

function describeAccess({
  verb,
  resource,
  subresource,
  name,
  namespace,
  path,
}: AccessQuestion): string {
  if (path !== undefined) return `${verb} ${path}`;
  const what = subresource === undefined ? resource : `${resource}/${subresource}`;
  const which = name === undefined ? '' : ` ${name}`;
  return `${verb} ${what}${which}${namespace === undefined ? '' : ` in ${namespace}`}`;
}

/** Returns every access that the component needs if it runs in this namespace. */
export function accessesIn(
  { manifests, account, namespace: usual }: ComponentRights,
  present: string,
): AccessQuestion[] {
  const roles = manifests.filter(({ kind }) => kind === 'ClusterRole' || kind === 'Role') as Role[];
  return manifests.flatMap((manifest) => {
    const { kind, metadata, roleRef, subjects = [] } = manifest as Binding;
    if (kind !== 'ClusterRoleBinding' && kind !== 'RoleBinding') return [];
    if (!subjects.some((each) => each.kind === 'ServiceAccount' && each.name === account))
      return [];
    const bound = kind === 'RoleBinding' ? metadata.namespace : undefined;
    const role = roles.find(
      (each) =>
        each.kind === roleRef?.kind &&
        each.metadata.name === roleRef?.name &&
        (each.kind === 'ClusterRole' || each.metadata.namespace === bound),
    );
    return (role?.rules ?? []).flatMap((rule) =>
      accessesOf(rule, bound === usual ? present : bound),
    );
  });
}

function accessesOf(rule: RightsRule, namespace: string | undefined): AccessQuestion[] {
  const { apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [], verbs } = rule;
  const paths = nonResourceURLs.flatMap((path) => verbs.map((verb) => ({ verb, path })));
  const names = resourceNames.length > 0 ? resourceNames : [undefined];
  const objects = verbs.flatMap((verb) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((each) => {
        const [resource = '', subresource] = each.split('/');
        return names.map(
          (name): AccessQuestion => ({
            verb,
            group,
            resource,
            ...(subresource !== undefined && { subresource }),
            ...(name !== undefined && { name }),
            ...(namespace !== undefined && { namespace }),
          }),
        );
      }),
    ),
  );
  return [...paths, ...objects];
}
