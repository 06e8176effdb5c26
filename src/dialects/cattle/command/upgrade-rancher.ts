/**
 * Implements `refit upgrade` for K3s and RKE2: writes the version into the Plans of system-upgrade-controller that install
 * it. If the cluster has no such Plan, it writes one for the servers and one for the agents.
 */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import type { ReadObject } from '../../../api/read-object.ts';
import { cattlePlanKind } from '../../../api/schemas.ts';
import type {
  UpgradeChoice,
  UpgradeChoices,
  UpgradeDraft,
  UpgradeSituation,
} from '../../../cli/contract/upgrade-way.ts';
import { writeUnlessChanged } from '../../../cli/controls/roll-back.ts';
import { type Inspection, inspectAll, shownAt } from '../../../cli/status/observe.ts';
import { isNamed } from '../../../cli/status/plan-names.ts';
import { stateOf } from '../../../cli/status/text.ts';
import { connectionWords } from '../../../cli/upgrade/connection-words.ts';
import { writeInOrder } from '../../../cli/upgrade/in-order.ts';
import { patchCommand } from '../../../cli/upgrade/patch-command.ts';
import { previewPlans } from '../../../cli/upgrade/preview-plans.ts';
import { refuseUpgrade } from '../../../cli/upgrade/refuse-upgrade.ts';
import { isRunBegun } from '../../../engine/gates/types.ts';
import { isFinal } from '../../../engine/model/rollout.ts';
import {
  apiVersionOf,
  keyOf,
  kubeletVersionOf,
  type Node,
  nodes,
} from '../../../kube/resources.ts';
import { matchesLabels } from '../../../kube/selectors.ts';
import { counted, listed } from '../../../util/phrases.ts';
import { compareVersionTexts, parseVersion } from '../../../util/version.ts';
import { hasTag, installsKubernetes, isReported } from '../plan/installed-version.ts';

const CONTROL_PLANE = 'node-role.kubernetes.io/control-plane';
const ETCD = 'node-role.kubernetes.io/etcd';
const NAMESPACE = 'system-upgrade';
const SERVERS = 'server-plan';
const AGENTS = 'agent-plan';
const WORDS = '--dialect cattle';

interface Product {
  readonly name: string;
  /** How the build of its versions begins. */
  readonly build: string;
  readonly image: string;
}

const PRODUCTS: readonly Product[] = [
  { name: 'K3s', build: 'k3s', image: 'rancher/k3s-upgrade' },
  { name: 'RKE2', build: 'rke2r', image: 'rancher/rke2-upgrade' },
];

/** There is one choice: all Plans that install Kubernetes, or the Plan that the user names. */
export const upgradeRancher: UpgradeChoices = async (session, flags, parts) => {
  const loaded = session.loaded.find(({ dialect }) => dialect.plans === cattlePlans);
  if (flags.cluster !== undefined || loaded === undefined) return [];
  const situation: UpgradeSituation = { session, flags, parts };
  const { inspections, unreadable } = await inspectAll(
    [loaded],
    session.viewParts,
    parts.clock.now(),
  );
  const [fault] = unreadable;
  if (fault !== undefined) throw fault;
  const all = loaded.world.list(nodes);
  const product = productOf(all);
  const installers = inspections.filter(({ plan }) => isInstallation(plan as CattlePlan, product));
  const { plan: named } = flags;
  const meant =
    named === undefined ? installers : inspections.filter((each) => isNamed(each, named));
  const [first] = meant;
  if (first !== undefined) {
    const choice: UpgradeChoice = {
      words: WORDS,
      draft: async (version) =>
        await Promise.resolve(changed(version, serversFirst(meant, all), situation)),
    };
    return [choice];
  }
  if (product === undefined || named !== undefined) return [];
  return [
    {
      words: WORDS,
      draft: async (version) => await Promise.resolve(created(version, product, all, situation)),
    },
  ];
};

/**
 * Returns true if the Plan installs the product. A mirror may give the image any name, but the version of such a Plan has the
 * build of the product.
 */
function isInstallation(plan: CattlePlan, product: Product | undefined): boolean {
  if (installsKubernetes(plan)) return true;
  const build = parseVersion(plan.spec?.version)?.build;
  return product !== undefined && build?.startsWith(product.build) === true;
}

/** Returns the Plans that select servers before the others, because no agent may be newer than a server. */
function serversFirst(plans: readonly Inspection[], all: readonly Node[]): readonly Inspection[] {
  const servers = all.filter(isServer);
  const selectsServers = ({ plan }: Inspection): boolean => {
    const { nodeSelector } = (plan as CattlePlan).spec ?? {};
    return (
      nodeSelector !== undefined &&
      servers.some(({ metadata }) => matchesLabels(nodeSelector, metadata.labels))
    );
  };
  return plans.toSorted(
    (one, other) => Number(selectsServers(other)) - Number(selectsServers(one)),
  );
}

function isServer({ metadata: { labels = {} } }: Node): boolean {
  return CONTROL_PLANE in labels;
}

function productOf(all: readonly Node[]): Product | undefined {
  const builds = all.map((node) => parseVersion(kubeletVersionOf(node))?.build ?? '');
  return PRODUCTS.find(({ build }) => builds.some((each) => each.startsWith(build)));
}

/** Throws REFIT_CONTROL if the version lacks the build of the product, because no image has such a tag. */
function checkBuild(version: string, product: Product | undefined): void {
  if (product === undefined) return;
  if (parseVersion(version)?.build.startsWith(product.build) === true) return;
  refuseUpgrade(
    `a version of ${product.name} has its build, found ${version}`,
    `write for example refit upgrade ${version.replace(/\+.*/, '')}+${product.build}1`,
  );
}

function changed(
  version: string,
  meant: readonly Inspection[],
  situation: UpgradeSituation,
): UpgradeDraft {
  const { session, parts } = situation;
  const now = parts.clock.now();
  checkBuild(version, productOf(session.loaded.flatMap(({ world }) => world.list(nodes))));
  const behind = meant.filter(({ plan }) => (plan as CattlePlan).spec?.version !== version);
  if (behind.length === 0)
    refuseUpgrade(
      `${titlesOf(meant)} already ${meant.length === 1 ? 'asks' : 'ask'} for ${version}, so nothing is left to write`,
      'see how far the nodes are with `refit status`',
    );
  for (const each of behind) refuseUnwritable(each, version, now);
  const made = behind.map((old) => ({ old, plan: withVersion(old.plan as CattlePlan, version) }));
  const { group, plural: resource } = cattlePlans;
  const verb = 'patch';
  return {
    ...common(
      made.map(({ plan }) => plan),
      situation,
    ),
    said: made.map(({ old, plan }) => {
      const before = (old.plan as CattlePlan).spec?.version ?? 'no version';
      return `Plan ${keyOf(plan)} changes from ${before} to ${version}. Whether its image is published is not checked.`;
    }),
    needs: made.map(({ plan: { metadata } }) => ({
      verb,
      group,
      resource,
      name: metadata.name,
      ...(metadata.namespace !== undefined && { namespace: metadata.namespace }),
    })),
    kubectl: made.map(({ plan }) =>
      patchCommand(
        `${resource}.${group}`,
        plan,
        { spec: { version } },
        connectionWords(situation.flags),
      ),
    ),
    write: async (dryRun) =>
      await writeInOrder(made, titleOf, async ({ old, plan: { metadata } }) => {
        const { name, namespace } = metadata;
        await writeUnlessChanged(session, old, now, async (resourceVersion) => {
          const options = { type: 'merge', dryRun, namespace, abort: parts.abort } as const;
          const body = { metadata: { resourceVersion }, spec: { version } };
          await session.client.patch(cattlePlans, name, body, options);
        });
      }),
  };
}

function withVersion({ status: _status, ...plan }: CattlePlan, version: string): CattlePlan {
  return { ...plan, spec: { upgrade: { image: '' }, ...plan.spec, version } };
}

function titleOf({ plan }: { readonly plan: CattlePlan }): string {
  return `Plan ${keyOf(plan)}`;
}

function titlesOf(plans: readonly Inspection[]): string {
  return `Plan ${listed(plans.map(({ plan }) => keyOf(plan)))}`;
}

/** Throws REFIT_CONTROL if a new version alone would not change what the Plan installs, or if the Plan runs. */
function refuseUnwritable(old: Inspection, version: string, now: number): void {
  const { metadata, spec } = old.plan as CattlePlan;
  const title = `Plan ${keyOf({ metadata })}`;
  if (isRunBegun(old.snapshot) && !isFinal(old.snapshot.rollout))
    refuseUpgrade(
      old.snapshot.plan.controls.abort === undefined
        ? `${title} ${stateOf(shownAt(old, now))}, and has not ended`
        : `${title} was aborted, and nodes of it are still in progress`,
      'follow it with `refit status --watch`, or end it with `refit abort`',
    );
  if (compareVersionTexts(version, spec?.version) < 0)
    refuseUpgrade(
      `${title} has ${spec?.version}, and ${version} is older`,
      'to go back to an earlier version, use refit rollback',
    );
  if ((spec?.version ?? '') === '' && (spec?.channel ?? '') !== '')
    refuseUpgrade(
      `${title} follows the channel ${spec?.channel}, which says its version`,
      'a version in the Plan would end that: set spec.version with kubectl if you want it',
    );
  const image = spec?.upgrade?.image ?? '';
  if (hasTag(image))
    refuseUpgrade(
      `${title} has the image ${image}, which names its version itself`,
      'change spec.version and spec.upgrade.image together, with kubectl',
    );
}

/** The images run on Linux. */
const ON_LINUX = { key: 'kubernetes.io/os', operator: 'In' as const, values: ['linux'] };

/** Throws REFIT_CONTROL for servers that run etcd alone. They would be in neither Plan, or count as agents. */
function refuseOtherRoles(all: readonly Node[]): void {
  const others = all.filter((node) => !isServer(node) && ETCD in (node.metadata.labels ?? {}));
  if (others.length === 0) return;
  refuseUpgrade(
    `${listed(others.map(({ metadata }) => metadata.name))} ${others.length === 1 ? 'runs' : 'run'} etcd alone, and must be upgraded before the other servers`,
    'write Plans for each role yourself; after that, refit upgrade changes their versions',
  );
}

function created(
  version: string,
  product: Product,
  all: readonly Node[],
  situation: UpgradeSituation,
): UpgradeDraft {
  checkBuild(version, product);
  const behind = all.filter((node) => !isReported(kubeletVersionOf(node), version));
  if (behind.length === 0)
    refuseUpgrade(
      `all ${counted(all.length, 'node')} already run ${version}, so nothing is left to do`,
      'see them with `kubectl get nodes`',
    );
  refuseOtherRoles(all);
  const of = (name: string, spec: CattlePlan['spec'] & object): CattlePlan => ({
    apiVersion: apiVersionOf(cattlePlans),
    kind: cattlePlans.kind,
    metadata: { name, namespace: NAMESPACE },
    spec,
  });
  const shared = {
    concurrency: 1,
    cordon: true,
    serviceAccountName: 'system-upgrade',
    version,
    upgrade: { image: product.image },
  };
  const key = CONTROL_PLANE;
  const servers = of(SERVERS, {
    ...shared,
    nodeSelector: { matchExpressions: [ON_LINUX, { key, operator: 'Exists' }] },
  });
  const agents = of(AGENTS, {
    ...shared,
    nodeSelector: { matchExpressions: [ON_LINUX, { key, operator: 'DoesNotExist' }] },
    // The agents wait until the Plan of the servers is complete.
    prepare: { image: product.image, args: ['prepare', SERVERS] },
  });
  const plans = [
    ...(all.some(isServer) ? [servers] : []),
    ...(all.every(isServer) ? [] : [agents]),
  ];
  const { group, plural: resource } = cattlePlans;
  const words = connectionWords(situation.flags);
  return {
    ...common(plans, situation),
    said: plans.map(
      ({ metadata: { name } }) =>
        `Plan ${NAMESPACE}/${name} is created for ${version}, with the image ${product.image}, one node at a time. Whether the image is published is not checked.`,
    ),
    needs: [{ verb: 'create', group, resource, namespace: NAMESPACE }],
    kubectl: [`refit upgrade ${version}${words} -o yaml | kubectl${words} apply -f -`],
    write: async (dryRun) =>
      await writeInOrder(
        plans.map((plan) => ({ plan })),
        titleOf,
        async ({ plan }) => {
          const options = { namespace: NAMESPACE, dryRun, abort: situation.parts.abort };
          await situation.session.client.create(cattlePlans, plan, options);
        },
      ),
  };
}

function common(
  plans: readonly CattlePlan[],
  { session, flags, parts }: UpgradeSituation,
): Pick<UpgradeDraft, 'objects' | 'preview' | 'next'> {
  const read = plans.map(
    (object): ReadObject => ({ place: `Plan ${keyOf(object)}`, kind: cattlePlanKind, object }),
  );
  return {
    objects: plans.map(({ metadata, ...plan }) => ({
      ...plan,
      metadata: {
        name: metadata.name,
        ...(metadata.namespace && { namespace: metadata.namespace }),
      },
    })),
    preview: async () => await previewPlans(session, read, flags, parts),
    next: ['The version is written. Follow the upgrade with: refit status --watch'],
  };
}
