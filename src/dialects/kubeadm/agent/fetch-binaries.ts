/** Downloads the binaries of a version. The signal names a list of these binaries and the hash of that list. */
import * as files from 'node:fs/promises';
import { join } from 'node:path';
import type { FetchRequest } from '../../../agent/download/fetch.ts';
import { download } from '../../../agent/download/stage-binary.ts';
import { fileTrust } from '../../../agent/state/trusted-path.ts';
import type { SignalCommand } from '../../../signal/annotations.ts';
import type { Tools } from '../../../util/tools.ts';
import type { Upgrade } from '../host/host.ts';

/** The tools and limits that an agent uses for all of its downloads. */
export interface FetchTools extends Tools, Pick<FetchRequest, 'userAgent' | 'limits'> {
  readonly directory: string;
  /** The root directory of the host. Scripts get it as REFIT_ROOT. Paths in scripts do not include it. */
  readonly root: string;
}

export interface FetchParts extends FetchTools {
  readonly abort: AbortSignal;
}

const MOST_LIST_BYTES = 64 * 1024;

/**
 * Downloads the binaries. Leaves out a binary that is already in the directory and has the right hash. Rejects with a
 * reason for people.
 */
export async function fetchBinaries(
  command: SignalCommand,
  parts: FetchParts,
): Promise<Upgrade['binaries']> {
  const { limits, root } = parts;
  // Guard list-hash. The list proves the binaries only if its own hash is known.
  if (command.sha256 === undefined)
    throw new Error(
      'kubeadm hosts need a sha256 of the list of binaries: start capi-extension with --checksum-url',
    );
  const short = { ...limits, maxBytes: Math.min(limits.maxBytes, MOST_LIST_BYTES) };
  const list = await fetched('list', command.url, command.sha256, { ...parts, limits: short });
  const { kubeadm, kubelet, kubectl } = hashesIn(await files.readFile(list, 'utf8'));
  const binary = async (name: string, sha256: string) => {
    // Guard listed-binary. Each binary needs the hash from the list.
    const path = await fetched(name, new URL(name, command.url).href, sha256, parts);
    return { path: path.slice(root.length), sha256 };
  };
  if (!kubeadm || !kubelet) throw new Error('the list of binaries lacks kubeadm or kubelet');
  const both = {
    kubeadm: await binary('kubeadm', kubeadm),
    kubelet: await binary('kubelet', kubelet),
  };
  return kubectl === undefined ? both : { ...both, kubectl: await binary('kubectl', kubectl) };
}

async function fetched(
  name: string,
  url: string,
  sha256: string | undefined,
  parts: FetchParts,
): Promise<string> {
  const staged = join(parts.directory, name);
  const paths = { part: `${staged}.part`, record: `${staged}.json` };
  // Guard binaries-folder. Nobody else can change the binaries before the script checks them.
  const prepare = async (): Promise<void> => await fileTrust.makePrivate(parts.directory);
  await download(
    { ...parts, url, sha256, staged, paths, prepare },
    { ...parts, files, environment: process.env },
  );
  return staged;
}

/** Returns the hash of each file name in `text`, which is output of sha256sum. */
export function hashesIn(text: string): Readonly<Record<string, string>> {
  const lines = text.split('\n').filter((line) => line !== '');
  const found = lines.map((line): [string, string] => {
    const [, hash = '', name = ''] =
      /^([0-9a-f]{64}) [ *](kubeadm|kubelet|kubectl)$/.exec(line) ?? [];
    if (name !== '') return [name, hash];
    const wanted = 'expected the output of sha256sum for kubeadm, kubelet and kubectl';
    throw new Error(
      `the list of binaries has the line ${JSON.stringify(line.slice(0, 100))}: ${wanted}`,
    );
  });
  // Guard list-twice. One name has only one hash.
  if (new Set(found.map(([name]) => name)).size < found.length)
    throw new Error('the list names a binary twice');
  return Object.fromEntries(found);
}
