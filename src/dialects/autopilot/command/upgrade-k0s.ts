/** Implements `refit upgrade` for k0s: writes the Plan `autopilot`, with the files of the version and their digests. */
import {
  type K0sUpdate,
  PLAN_NAME,
  type Plan,
  planKind,
  plans,
} from '../../../api/autopilot/plan.ts';
import { updateConfigs } from '../../../api/autopilot/update-config.ts';
import type {
  UpgradeChoice,
  UpgradeChoices,
  UpgradeDraft,
  UpgradeFlags,
  UpgradeParts,
  UpgradeSituation,
} from '../../../cli/contract/upgrade-way.ts';
import { type Inspection, inspectAll, shownAt } from '../../../cli/status/observe.ts';
import type { Session } from '../../../cli/status/status-session.ts';
import { stateOf } from '../../../cli/status/text.ts';
import { connectionWords } from '../../../cli/upgrade/connection-words.ts';
import { previewPlans } from '../../../cli/upgrade/preview-plans.ts';
import { refuseUpgrade } from '../../../cli/upgrade/refuse-upgrade.ts';
import type { World } from '../../../engine/contract/world.ts';
import { ROLLS_BACK_ANNOTATION } from '../../../engine/model/earlier-versions.ts';
import { isFinal } from '../../../engine/model/rollout.ts';
import { apiVersionOf, nodes, type ObjectMeta } from '../../../kube/resources.ts';
import { ifAllowed, ifFound } from '../../../kube/status-error.ts';
import { isKeptFileUrl } from '../../../signal/kept-file.ts';
import { rfc3339 } from '../../../util/clock.ts';
import { counted, listed } from '../../../util/phrases.ts';
import { shellWord } from '../../../util/shell-word.ts';
import { compareVersionTexts, parseVersion } from '../../../util/version.ts';
import { autopilot } from '../plan/autopilot-dialect.ts';
import { concurrentIn, type PresentNode, presentNodes } from '../plan/roll-back-plan.ts';
import { publishedFiles } from './published-files.ts';
import { checkReplacement, replacePlan } from './replace-plan.ts';
import { refuseOtherLeader } from './roll-back-command.ts';

/** The names by which commands know the Plan. */
const NAMES: readonly string[] = ['', 'plan/', 'autopilot/'].map((kind) => `${kind}${PLAN_NAME}`);

/** There is one choice, because k0s carries out only the Plan `autopilot`. */
export const upgradeK0s: UpgradeChoices = async (session, flags, parts) =>
  await Promise.resolve(choicesOf(session, flags, parts));

function choicesOf(
  session: Session,
  flags: UpgradeFlags,
  parts: UpgradeParts,
): readonly UpgradeChoice[] {
  if (flags.cluster !== undefined) return [];
  if (flags.plan !== undefined && !NAMES.includes(flags.plan.toLowerCase())) return [];
  const loaded = session.loaded.find(({ dialect }) => dialect.plans === plans);
  const present = loaded === undefined ? [] : presentNodes(loaded.world).filter(isOfK0s);
  if (loaded === undefined || present.length === 0) return [];
  const { world } = loaded;
  const choice: UpgradeChoice = {
    words: `--dialect ${autopilot.name}`,
    draft: async (version) => await draftOf(version, { session, world, present, flags, parts }),
  };
  return [choice];
}

function isOfK0s({ role, version }: PresentNode): boolean {
  return role === 'controller' || parseVersion(version)?.build.startsWith('k0s') === true;
}

interface Situation extends UpgradeSituation {
  readonly world: World;
  readonly present: readonly PresentNode[];
}

async function draftOf(version: string, situation: Situation): Promise<UpgradeDraft> {
  const { session, world, present, flags, parts } = situation;
  const { clock, abort } = parts;
  refuseWithoutFiles(present);
  if (parseVersion(version)?.build.startsWith('k0s.') !== true)
    refuseUpgrade(
      `versions of k0s end with a build such as +k0s.0, found ${version}`,
      `write for example refit upgrade ${version.replace(/\+.*/, '')}+k0s.0`,
    );
  const now = clock.now();
  const old = await lastPlan(session, now);
  refuseIfRunning(old, now);
  await refuseOtherLeader(session, now);
  const behind = present.filter((node) => !isAt(node, version));
  if (behind.length === 0)
    refuseUpgrade(
      `${counted(present.length, 'node')} of k0s already run ${version}, so nothing is left to do`,
      'see them with `refit status -o wide`',
    );
  const platforms = platformsOf(present);
  const last = updateOf(old);
  const source = last ?? (old === undefined ? undefined : anyUpdateOf(old));
  const followed = await updateConfigsIn(session);
  const files = await publishedFiles({ version, platforms, from: flags.from, last: source }, parts);
  const concurrent = old === undefined ? 1 : concurrentIn(old.plan as Plan);
  const all = { present, nodes: world.list(nodes).length, concurrent };
  const { targets, sentence } = last === undefined ? allTargets(all) : keptTargets(last);
  const after =
    old !== undefined && isRollBack(old)
      ? ['The Plan before it rolled back some nodes, so its selection is not kept.']
      : [];
  const k0supdate: K0sUpdate = { version, platforms: files.platforms, targets };
  const plan: Plan = {
    apiVersion: apiVersionOf(plans),
    kind: plans.kind,
    metadata: { name: PLAN_NAME, ...ownMetadata(old) },
    spec: { id: rfc3339(now), timestamp: 'now', commands: [{ k0supdate }] },
  };
  const title = `Plan ${PLAN_NAME}`;
  return {
    objects: [plan],
    said: [
      old === undefined
        ? `${title} is created for ${version}.`
        : `${title}, which has ended, is replaced by one for ${version}; the NodeRollout keeps the history.`,
      changeSentence(behind, version),
      ...after,
      sentence,
      ...followed.map(
        (name) =>
          `UpdateConfig ${name} follows a channel, and may replace this Plan by one for the release of its channel. See refit updates.`,
      ),
      ...files.said,
      ...bundleSentence(old),
    ],
    ...wordsOf(version, old, flags),
    preview: async () =>
      await previewPlans(session, [{ place: title, kind: planKind, object: plan }], flags, parts),
    async write(dryRun) {
      if (old === undefined) await session.client.create(plans, plan, { dryRun, abort });
      else if (dryRun) await checkReplacement(session, old, plan, now);
      else await replacePlan(session, old, plan, now);
    },
    next: [`${title} is written. Follow it with: refit status --watch`],
  };
}

/** Returns the rights that the write needs, and the commands of kubectl that would do the same. */
function wordsOf(
  version: string,
  old: Inspection | undefined,
  flags: UpgradeFlags,
): Pick<UpgradeDraft, 'needs' | 'kubectl'> {
  const words = connectionWords(flags);
  const from = flags.from === undefined ? '' : ` --from ${shellWord(flags.from)}`;
  const verbs = old === undefined ? ['create'] : ['patch', 'delete', 'create'];
  const { group, plural: resource } = plans;
  return {
    needs: verbs.map((verb) => ({
      verb,
      group,
      resource,
      // The rights of a creation cannot name the object.
      ...(verb === 'create' ? {} : { name: PLAN_NAME }),
    })),
    kubectl: [
      `refit upgrade ${version}${from}${words} -o yaml > plan.yaml`,
      `kubectl${words} ${old === undefined ? 'create' : 'replace --force'} -f plan.yaml`,
    ],
  };
}

async function lastPlan(
  { loaded, viewParts }: Session,
  now: number,
): Promise<Inspection | undefined> {
  const { inspections, unreadable } = await inspectAll(loaded, viewParts, now);
  const [fault] = unreadable.filter(({ dialect }) => dialect === autopilot);
  if (fault !== undefined) throw fault;
  return inspections.find(
    ({ plan, dialect }) => dialect.plans === plans && plan.metadata.name === PLAN_NAME,
  );
}

function refuseIfRunning(old: Inspection | undefined, now: number): void {
  if (old === undefined || isFinal(old.snapshot.rollout)) return;
  refuseUpgrade(
    `Plan ${PLAN_NAME} ${stateOf(shownAt(old, now))}, and has not ended`,
    'follow it with `refit status --watch`, or end it with `refit abort`',
  );
}

/** Returns true if the object of the node, or its agent, proves that it runs the version. */
function isAt({ version, installed, proven }: PresentNode, wanted: string): boolean {
  return [version, installed, proven].includes(wanted);
}

/** k0s has files for Linux alone. */
function hasFile({ platform }: PresentNode): boolean {
  return platform?.startsWith('linux-') === true;
}

/** Throws REFIT_CONTROL if the platform of a node is not known, or if k0s has no file for a controller or for any node. */
function refuseWithoutFiles(present: readonly PresentNode[]): void {
  const untold = present.filter(({ platform }) => platform === undefined).map(({ name }) => name);
  if (untold.length > 0)
    refuseUpgrade(
      `${listed(untold)}: the labels kubernetes.io/os and kubernetes.io/arch do not say the platform`,
      'wait until the nodes have registered, or write the Plan yourself',
    );
  const without = present.filter((node) => !hasFile(node));
  const controllers = without.filter(({ role }) => role === 'controller');
  if (controllers.length > 0 || without.length === present.length)
    refuseUpgrade(
      `k0s has no file for the platform of ${listed((controllers.length > 0 ? controllers : without).map(({ name }) => name))}`,
      'upgrade these nodes by hand',
    );
}

function platformsOf(present: readonly PresentNode[]): string[] {
  const all = present.filter(hasFile).flatMap(({ platform }) => platform ?? []);
  return [...new Set(all)].toSorted();
}

/** Resolves with the names of the UpdateConfigs, which make Plans of their own; with none if the user may not list them. */
async function updateConfigsIn({ client, abort }: Session): Promise<readonly string[]> {
  const found = await ifAllowed(ifFound(client.listAll(updateConfigs, { abort })));
  return (found?.items ?? []).map(({ metadata: { name } }) => name);
}

/** Returns the labels and annotations of the last Plan that its author chose. Those of Refit and kubectl are about that Plan alone. */
function ownMetadata(old: Inspection | undefined): Pick<ObjectMeta, 'labels' | 'annotations'> {
  const { labels, annotations = {} } = old?.plan.metadata ?? {};
  const own = Object.entries(annotations).filter(
    ([key]) => !/^(?:upgrade\.refit\.dev|kubectl\.kubernetes\.io)\//.test(key),
  );
  return {
    ...(labels === undefined ? {} : { labels }),
    ...(own.length === 0 ? {} : { annotations: Object.fromEntries(own) }),
  };
}

/**
 * Returns what the last Plan did, if another Plan can follow it. A Plan that rolled back lists only some nodes. Throws
 * REFIT_CONTROL if the Plan has several updates, because each of them has nodes and limits of its own.
 */
function updateOf(old: Inspection | undefined): K0sUpdate | undefined {
  if (old === undefined || isRollBack(old)) return undefined;
  const { spec } = old.plan as Plan;
  const updates = spec.commands.flatMap(({ k0supdate }) => k0supdate ?? []);
  if (updates.length > 1)
    refuseUpgrade(
      `the last Plan has ${updates.length} updates with nodes and limits of their own`,
      'change their versions and files yourself, and apply the Plan with kubectl replace --force -f',
    );
  return updates[0];
}

/** Returns an update of the last Plan, whose addresses say where files are. Those of kept files on the hosts say nothing. */
function anyUpdateOf({ plan }: Inspection): K0sUpdate | undefined {
  return (plan as Plan).spec.commands
    .flatMap(({ k0supdate }) => k0supdate ?? [])
    .find(({ platforms }) => Object.values(platforms).every(({ url }) => !isKeptFileUrl(url)));
}

/** Says from which versions nodes go, and whether some of them go down. */
function changeSentence(behind: readonly PresentNode[], version: string): string {
  const counts = Map.groupBy(behind, (node) => node.version ?? 'an unknown version');
  const from = [...counts].map(([each, nodes]) => `${each} (${counted(nodes.length, 'node')})`);
  const isDown = [...counts.keys()].some((each) => compareVersionTexts(version, each) < 0);
  return `It goes from ${listed(from)} ${isDown ? 'DOWN ' : ''}to ${version}.`;
}

function isRollBack({ plan }: Inspection): boolean {
  return plan.metadata.annotations?.[ROLLS_BACK_ANNOTATION] !== undefined;
}

function bundleSentence(old: Inspection | undefined): string[] {
  const hasBundle = (old?.plan as Plan | undefined)?.spec.commands.some(
    ({ airgapupdate }) => airgapupdate !== undefined,
  );
  return hasBundle === true
    ? [
        'The last Plan also had a bundle of images, and this one has none. If hosts have no registry, add an airgapupdate with -o yaml.',
      ]
    : [];
}

interface ChosenTargets {
  readonly targets: K0sUpdate['targets'];
  readonly sentence: string;
}

function keptTargets({ targets }: K0sUpdate): ChosenTargets {
  return { targets, sentence: 'It selects the same nodes as the Plan before it.' };
}

/**
 * Returns all nodes as targets. `nodes` is the number of Nodes. A controller may be a Node, too, and k0s runs on Nodes
 * with Windows, for which there is no file. Workers are named one by one if there are such Nodes, because a selector
 * would select them.
 */
function allTargets({
  present,
  nodes,
  concurrent,
}: {
  readonly present: readonly PresentNode[];
  readonly nodes: number;
  readonly concurrent: number;
}): ChosenTargets {
  const controllers = present.filter(({ role }) => role === 'controller');
  const workers = present.filter((node) => node.role === 'worker' && hasFile(node));
  const names = workers.map(({ name }) => name).toSorted();
  const all = { selector: {} };
  const discovery = workers.length === nodes ? all : { static: { nodes: names } };
  const targets = {
    ...(controllers.length > 0 && { controllers: { discovery: all } }),
    ...(workers.length > 0 && { workers: { discovery, limits: { concurrent } } }),
  };
  const counts = [
    ...(controllers.length > 0 ? [counted(controllers.length, 'controller')] : []),
    ...(workers.length > 0 ? [counted(workers.length, 'worker')] : []),
  ];
  const pace =
    concurrent === 1 ? 'upgrades one at a time' : `upgrades ${concurrent} workers at a time`;
  return { targets, sentence: `It selects ${counts.join(' and ')}, and ${pace}.` };
}
