/** Implements `refit upgrade -m`: writes the version into the manifest of a kubeadm cluster. It changes no host. */
import { randomUUID } from 'node:crypto';
import { rename, rm, stat, writeFile } from 'node:fs/promises';
import { isConfirmed } from '../../../cli/confirm.ts';
import type { UpgradeFile } from '../../../cli/contract/upgrade-way.ts';
import { say } from '../../../cli/controls/control-command.ts';
import { dryRunLines } from '../../../cli/controls/dry-run.ts';
import { readNamed } from '../../../util/bounded-file.ts';
import { EXIT, messageOf, RefitError } from '../../../util/errors.ts';
import { compareVersionTexts } from '../../../util/version.ts';
import { withV } from '../plan/fields.ts';
import { parseManifest } from '../plan/manifest.ts';
import { renewManifest } from './renewed-manifest.ts';

export const upgradeManifest: UpgradeFile = async (wanted, flags, parts) => {
  const { manifest: path = '' } = flags;
  const { output, abort, environment } = parts;
  if (path === '-')
    throw new RefitError(
      'REFIT_USAGE',
      '-m must name a file, because the version is written there',
    );
  const version = withV(wanted);
  const text = await readNamed(path);
  const { version: present } = parseManifest(text, path);
  refuseVersion(version, present, path);
  const renewed = await renewManifest(text, present, version, { environment, abort });
  // What is written must be a manifest, too.
  parseManifest(renewed.text, path);
  if (flags.output === 'yaml') {
    output.write(renewed.text);
    return EXIT.ok;
  }
  const next = [
    'Nothing changes on the hosts until you apply the manifest. See what it would do, and then start it:',
    `  refit kubeadm plan -m ${path}`,
    `  refit kubeadm apply -m ${path}`,
  ];
  say(parts, [`${path} changes from ${present} to ${version}:`]);
  output.write(`${differenceOf(text, renewed.text).join('\n')}\n`);
  say(parts, [...renewed.said, ...dryRunLines(flags)]);
  if (flags.dryRun !== undefined) return EXIT.ok;
  const unasked = 'refit upgrade asks before it writes, and this is no terminal: pass --yes';
  if (flags.yes !== true && !(await isConfirmed(`Write ${path}?`, { unasked, abort }))) {
    say(parts, ['Nothing was written.']);
    return EXIT.ok;
  }
  await replaceFile(path, text, renewed.text);
  say(parts, [`${path} is written.`, ...next]);
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

/** Replaces the file at once, so that nobody reads half of it. Rejects if somebody has changed it since it was read. */
async function replaceFile(path: string, before: string, after: string): Promise<void> {
  const next = `${path}.${randomUUID()}`;
  try {
    const { mode } = await stat(path);
    await writeFile(next, after, { mode, flag: 'wx' });
    if ((await readNamed(path)) !== before)
      throw new Error('somebody has changed it meanwhile; run this again');
    await rename(next, path);
  } catch (error) {
    await rm(next, { force: true });
    throw new RefitError('REFIT_FILE', `${path} was not written: ${messageOf(error)}`, {
      cause: error,
    });
  }
}
