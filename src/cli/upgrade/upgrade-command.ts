/** Implements `refit upgrade VERSION`: finds what can get the version, shows what that would do, asks, and writes it. */
import type { KubeClient } from '../../kube/client.ts';
import { isAlreadyExists, isNotFound } from '../../kube/status-error.ts';
import { type AccessQuestion, mayI } from '../../ready/access.ts';
import { EXIT, messageOf, RefitError } from '../../util/errors.ts';
import { counted, listed } from '../../util/phrases.ts';
import { printable } from '../../util/printable.ts';
import { parseVersion, withV } from '../../util/version.ts';
import { writeYaml } from '../../util/yaml.ts';
import type {
  UpgradeChoice,
  UpgradeDraft,
  UpgradeFlags,
  UpgradeParts,
} from '../contract/upgrade-way.ts';
import { say } from '../controls/control-command.ts';
import { dryRunLines } from '../controls/dry-run.ts';
import { readAccepted } from '../ready/accept-flag.ts';
import { inSession, type Session } from '../status/status-session.ts';
import { failedRunSentences } from './failed-runs.ts';
import { isUpgradeWanted, refuseUpgrade } from './refuse-upgrade.ts';

/** Resolves with the exit code. */
export async function upgrade(
  wanted: string,
  flags: UpgradeFlags,
  parts: UpgradeParts,
): Promise<number> {
  checkFlags(wanted, flags);
  const version = withV(wanted);
  if (flags.manifest !== undefined) return await upgradeFile(version, flags, parts);
  const accepted = readAccepted(flags.accept ?? []);
  const choices = parts.modules
    .filter(({ name }) => flags.dialect === undefined || name === flags.dialect)
    .map((each) => each.upgrade)
    .filter((way) => way.kind === 'objects');
  // A management cluster of Cluster API may have nothing of Refit.
  const sessionParts = { ...parts, worksWithoutPlans: true };
  await inSession(flags, sessionParts, 'refit-upgrade', async (session) => {
    const found = await Promise.all(
      choices.map(async (way) => await (await way.load())(session, flags, { ...parts, accepted })),
    );
    const draft = await chosen(found.flat(), version, flags, session).draft(version);
    await carryOut(version, draft, flags, session, parts);
  });
  return EXIT.ok;
}

function checkFlags(
  version: string,
  { manifest, cluster, namespace, plan, from, output, dryRun }: UpgradeFlags,
): void {
  const fail = (message: string): never => {
    throw new RefitError('REFIT_USAGE', message);
  };
  if (parseVersion(version) === undefined)
    fail(`the version must be such as v1.37.2 or v1.37.2+k0s.0, found "${version}"`);
  const places = [manifest && '--manifest', cluster && '--cluster', plan && '--plan'].filter(
    (each) => each !== undefined,
  );
  if (places.length > 1)
    fail(`${listed(places)} name different things to upgrade; write one of them`);
  if (namespace !== undefined && cluster === undefined)
    fail('-n is the namespace of a Cluster, so it needs --cluster');
  if (from !== undefined && (manifest ?? cluster) !== undefined)
    fail('--from says where the files of k0s are, so neither --manifest nor --cluster uses it');
  if (output !== undefined && dryRun !== undefined)
    fail('-o yaml writes nothing to the cluster, so it needs no --dry-run');
}

const LOOKED_FOR =
  'Nodes of k0s, K3s or RKE2, Plans of system-upgrade-controller, and Clusters of Cluster API';

function chosen(
  choices: readonly UpgradeChoice[],
  version: string,
  { plan }: UpgradeFlags,
  { loaded }: Session,
): UpgradeChoice {
  const [first, ...others] = choices;
  if (first === undefined && plan !== undefined)
    return refuseUpgrade(
      `no plan ${plan} can get another version by this command`,
      'see the names of the plans with `refit status`, or leave --plan out',
    );
  if (first === undefined)
    return refuseUpgrade(
      `there is nothing here that refit upgrade can give another version; it looks for ${LOOKED_FOR}`,
      loaded.length === 0
        ? 'the cluster serves no kind of plans; install Refit with `refit install`, or name the manifest of a kubeadm cluster with -m'
        : `for a kubeadm cluster over SSH, name its manifest: refit upgrade ${version} -m cluster.yaml`,
    );
  if (others.length === 0) return first;
  throw new RefitError(
    'REFIT_USAGE',
    `${counted(choices.length, 'thing')} could get the version; choose one of them`,
    { problems: choices.map(({ words }) => `refit upgrade ${version} ${words}`) },
  );
}

async function carryOut(
  version: string,
  draft: UpgradeDraft,
  flags: UpgradeFlags,
  { client, abort }: Session,
  parts: UpgradeParts,
): Promise<void> {
  if (flags.output === 'yaml')
    return parts.output.write(draft.objects.map((each) => writeYaml(each)).join('---\n'));
  // Nothing is half-written because of a right that is missing for the second write.
  if (flags.dryRun !== 'client') await refuseWithoutRights(draft.needs, client, abort);
  say(parts, [...draft.said, ...(await failedRunSentences(version, client, abort))]);
  const reasons = await draft.preview();
  if (reasons.length > 0)
    throw new RefitError('REFIT_CONTROL', 'the upgrade was not started, and nothing was written', {
      problems: reasons,
      hint: 'see the preview above; to go back to an earlier version, use refit rollback',
    });
  // A command is not wrapped, so that it can be copied.
  const commands = draft.kubectl.map((line) => `  ${printable(line)}`);
  parts.output.write(`${['', 'kubectl would do the same with:', ...commands, ''].join('\n')}\n`);
  if (flags.dryRun === 'client') return say(parts, dryRunLines(flags));
  await written(draft, true);
  if (flags.dryRun === 'server') return say(parts, dryRunLines(flags));
  if (!(await isUpgradeWanted('Start this upgrade?', flags, parts))) return;
  // The cluster may have changed while the person was reading. So all writes are checked again before the first of them.
  await written(draft, true);
  await written(draft, false);
  say(parts, draft.next);
}

/** Writes the draft. What somebody else has done meanwhile is told as such. */
async function written(draft: UpgradeDraft, dryRun: boolean): Promise<void> {
  try {
    await draft.write(dryRun);
  } catch (error) {
    if (!isNotFound(error) && !isAlreadyExists(error)) throw error;
    throw new RefitError('REFIT_CONTROL', `the upgrade cannot be written: ${messageOf(error)}`, {
      hint: 'look at what exists with `refit status`, and run this again',
      cause: error,
    });
  }
}

/** Writes the version into the file that --manifest names. */
async function upgradeFile(
  version: string,
  flags: UpgradeFlags,
  parts: UpgradeParts,
): Promise<number> {
  const way = parts.modules.map((each) => each.upgrade).find((each) => each.kind === 'file');
  if (way === undefined)
    throw new RefitError('REFIT_CONTROL', 'no dialect upgrades hosts by a manifest');
  const { kubeconfig, context, as, accept, ready, dialect, dryRun } = flags;
  const useless = Object.entries({
    '--kubeconfig': kubeconfig,
    '--context': context,
    '--as': as,
    '--accept': accept,
    '--no-ready': ready === false ? true : undefined,
    '--dialect': dialect,
    '--dry-run=server': dryRun === 'server' ? true : undefined,
  }).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  if (useless.length > 0)
    throw new RefitError(
      'REFIT_USAGE',
      `${listed(useless)}: with --manifest the command changes a file, and asks no cluster`,
    );
  return await (await way.load())(version, flags, parts);
}

/** Rejects with all rights that the user lacks. */
async function refuseWithoutRights(
  needs: readonly AccessQuestion[],
  client: KubeClient,
  abort: AbortSignal,
): Promise<void> {
  const answers = await Promise.all(
    needs.map(async (need) => ({ need, allowed: await mayI(client, need, abort) })),
  );
  const missing = answers.filter(({ allowed }) => !allowed);
  if (missing.length === 0) return;
  throw new RefitError(
    'REFIT_CONTROL',
    'you lack rights for this upgrade, and nothing was written',
    {
      problems: missing.map(({ need }) => sentenceOf(need)),
      hint: 'ask your administrator for them, or give the output of -o yaml to somebody who has them',
    },
  );
}

function sentenceOf({ verb, resource = '', group = '', namespace }: AccessQuestion): string {
  const kind = group === '' ? resource : `${resource}.${group}`;
  return `you may not ${verb} ${kind}${namespace === undefined ? '' : ` in the namespace ${namespace}`}`;
}
