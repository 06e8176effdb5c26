/** Implements `refit upgrade -m`: writes the version into the manifest of a kubeadm cluster. It changes no host. */
import { randomUUID } from 'node:crypto';
import { chmod, chown, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import type { UpgradeFile } from '../../../cli/contract/upgrade-way.ts';
import { say } from '../../../cli/controls/control-command.ts';
import { dryRunLines } from '../../../cli/controls/dry-run.ts';
import { isUpgradeWanted } from '../../../cli/upgrade/refuse-upgrade.ts';
import { readNamed } from '../../../util/bounded-file.ts';
import { EXIT, messageOf, RefitError } from '../../../util/errors.ts';
import { printable } from '../../../util/printable.ts';
import { withOtherVersion } from '../../../util/renamed-version.ts';
import { shellWord } from '../../../util/shell-word.ts';
import { compareVersionTexts, parseVersion, withV } from '../../../util/version.ts';
import { type Manifest, parseManifest } from '../plan/manifest.ts';
import { renewManifest } from './renewed-manifest.ts';

export const upgradeManifest: UpgradeFile = async (wanted, flags, parts) => {
  const { manifest: path = '' } = flags;
  const { output } = parts;
  if (path === '-')
    throw new RefitError(
      'REFIT_USAGE',
      '-m must name a file, because the version is written there',
    );
  const version = withV(wanted);
  if (parseVersion(version)?.build !== '')
    throw new RefitError(
      'REFIT_USAGE',
      `a release of Kubernetes has no build, found ${version}; write for example v1.37.2`,
    );
  const text = await readNamed(path);
  const { version: present } = parseManifest(text, path);
  refuseVersion(version, present, path);
  const renewed = await renewManifest(text, present, version, parts);
  checkRenewed(parseManifest(renewed.text, path), present, version);
  if (flags.output === 'yaml') {
    output.write(renewed.text);
    return EXIT.ok;
  }
  const next = [
    'Nothing changes on the hosts until you apply the manifest. See what it would do, and then start it:',
    `  refit kubeadm plan -m ${shellWord(path)}`,
    `  refit kubeadm apply -m ${shellWord(path)}`,
  ];
  say(parts, [`${path} changes from ${present} to ${version}:`]);
  output.write(`${differenceOf(text, renewed.text).join('\n')}\n`);
  say(parts, [...renewed.said, ...dryRunLines(flags)]);
  if (flags.dryRun !== undefined) return EXIT.ok;
  if (!(await isUpgradeWanted(`Write ${path}?`, flags, parts))) return EXIT.ok;
  await replaceFile(path, text, renewed.text);
  say(parts, [`${path} is written.`]);
  // Commands are not wrapped, so that they can be copied.
  output.write(`${next.map((line) => printable(line)).join('\n')}\n`);
  return EXIT.ok;
};

function refuseVersion(version: string, present: string, path: string): void {
  const order = compareVersionTexts(version, present);
  if (order > 0) return;
  throw new RefitError(
    'REFIT_CONTROL',
    order === 0
      ? `${path} already has ${version}, so nothing is left to write`
      : `${path} has ${present}, and ${version} is older`,
    {
      hint:
        order === 0
          ? `see what is left to do with refit kubeadm plan -m ${path}`
          : `to go back to an older patch, write it into the file, and run refit kubeadm apply --back -m ${path}`,
    },
  );
}

/** Returns the lines that differ, as a difference shows them. A new version changes lines, and adds none. */
function differenceOf(before: string, after: string): string[] {
  const then = after.split('\n');
  return before.split('\n').flatMap((line, index) => {
    const changed = then[index] ?? '';
    return line === changed ? [] : [`-${line}`, `+${changed}`];
  });
}

/** Throws REFIT_CONTROL if the text still has the old version somewhere, for example behind an alias of YAML. */
function checkRenewed({ version, binaries, hosts }: Manifest, from: string, to: string): void {
  const files = [binaries, ...hosts.map((each) => each.binaries ?? {})].flatMap((each) =>
    Object.values(each).map((file) => ('url' in file ? file.url : file.path)),
  );
  const isLeft =
    version !== to || files.some((file) => withOtherVersion(file, from, to) !== undefined);
  if (!isLeft) return;
  throw new RefitError('REFIT_CONTROL', `the manifest would still name ${from}`, {
    hint: 'write versions, addresses and paths as plain texts, without anchors and aliases of YAML, or change them by hand',
  });
}

const BYTE_ORDER_MARK = '\uFEFF';

/**
 * Replaces the file at once, so that nobody reads half of it. It keeps its mode, its owner and its place if the path is a
 * symbolic link. Rejects if somebody has changed it since it was read.
 */
async function replaceFile(path: string, before: string, after: string): Promise<void> {
  const real = await realpath(path);
  const next = `${real}.${randomUUID()}`;
  try {
    const { mode, uid, gid } = await stat(real);
    const raw = await readFile(real, 'utf8');
    const mark = raw.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : '';
    if (raw !== `${mark}${before}`)
      throw new Error('it is not UTF-8, or somebody has changed it meanwhile; run this again');
    await writeFile(next, `${mark}${after}`, { mode, flag: 'wx' });
    await chmod(next, mode);
    await chown(next, uid, gid);
    await rename(next, real);
  } catch (error) {
    await rm(next, { force: true });
    throw new RefitError('REFIT_FILE', `${path} was not written: ${messageOf(error)}`, {
      cause: error,
    });
  }
}
