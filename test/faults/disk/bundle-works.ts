/**
 * Simulates airgap bundles on a disk that fails: the files in the images directory before the work, and the files that
 * may be there during it.
 */
import { dirname, join } from 'node:path';
import type { PlacedBundle } from '../../../src/agent/download/bundle-list.ts';
import { pathsIn } from '../../../src/agent/state/state-directory.ts';
import {
  BINARY,
  bytesOf,
  type DiskWork,
  IMAGES,
  NEW,
  OLD,
  STATE,
  sha256Of,
  versionAt,
} from './disk-works.ts';
import type { SunkenFiles } from './sunken-files.ts';

const BUNDLE = 'bundle.tar';
const { bundles: LIST, bundleRecord } = pathsIn(STATE);
const PART = '.refit-airgap.part';

/** The files in the images directory before the work. */
interface Before {
  /** The bundles that the agent placed, the oldest first. */
  readonly ours: readonly PlacedBundle[];
  readonly theirs: readonly string[];
}

const bundleOf = (version: string): PlacedBundle => ({
  name: `${version}.tar`,
  url: `https://example.com/${version}.tar`,
  version,
  sha256: sha256Of(version),
});

function bundle(name: string, before: Before): DiskWork {
  const command = { id: 0, kind: 'airgapupdate', version: NEW, sha256: sha256Of(NEW) } as const;
  return {
    name,
    end: 'Completed',
    isDead: false,
    part: join(dirname(IMAGES), PART),
    leftovers: [join(dirname(IMAGES), PART), join(IMAGES, PART), bundleRecord],
    command: (url) => ({ ...command, url: new URL(BUNDLE, url).href }),
    prepare: (disk) => prepare(disk, before),
    wrongNow: (disk) => wrongNow(disk, before),
    wrongAtEnd: (disk, end, runs) => wrongAtEnd(disk, before, end, runs),
  };
}

function prepare(disk: SunkenFiles, { ours, theirs }: Before): void {
  disk.put(join(dirname(IMAGES), 'pki'), Buffer.from('theirs'));
  for (const name of theirs) disk.put(join(IMAGES, name), bytesOf(name), 0o644);
  for (const { name, version } of ours) disk.put(join(IMAGES, name), bytesOf(version), 0o644);
  if (ours.length > 0) disk.put(LIST, Buffer.from(JSON.stringify({ bundles: ours })), 0o600);
}

function wrongNow(disk: SunkenFiles, { ours, theirs }: Before): string[] {
  const found = namesIn(disk);
  const contents = new Map([
    [BUNDLE, NEW],
    ...theirs.map((name) => [name, name] as const),
    ...ours.map(({ name, version }) => [name, version] as const),
  ]);
  const torn = found.filter(
    (name) => disk.peek(join(IMAGES, name))?.equals(bytesOf(contents.get(name) ?? '')) !== true,
  );
  const gone = theirs.filter((name) => !found.includes(name));
  const isEarly = !found.includes(BUNDLE) && ours.some(({ name }) => !found.includes(name));
  return [
    ...torn.map((name) => `${name} among the images is not whole`),
    ...gone.map((name) => `${name}, which is somebody else's, is gone`),
    ...(isEarly ? ['an old bundle is gone before the new one is there'] : []),
  ];
}

function wrongAtEnd(
  disk: SunkenFiles,
  { ours, theirs }: Before,
  end: string,
  runs: string | undefined,
): string[] {
  const found = namesIn(disk);
  const wanted = [BUNDLE, ...theirs, ...ours.slice(-1).map(({ name }) => name)].toSorted();
  const isRight = end !== 'Completed' || found.join() === wanted.join();
  const known = [...theirs, ...listed(disk)];
  const lost = found.filter((name) => !known.includes(name));
  return [
    ...(isRight ? [] : [`Completed, and there are ${found.join(' ')}`]),
    ...lost.map((name) => `${name} is on no list and will stay for ever`),
    ...(versionAt(disk.peek(BINARY)) === OLD && runs === OLD ? [] : ['the service was touched']),
  ];
}

function namesIn(disk: SunkenFiles): string[] {
  return disk.paths
    .filter((path) => dirname(path) === IMAGES)
    .map((path) => path.slice(IMAGES.length + 1));
}

function listed(disk: SunkenFiles): string[] {
  const { bundles } = JSON.parse(disk.peek(LIST)?.toString() ?? '{"bundles":[]}') as {
    bundles: PlacedBundle[];
  };
  return bundles.map(({ name }) => name);
}

export const FIRST_BUNDLE = bundle('the first bundle of images on a host', {
  ours: [],
  theirs: [],
});
/** The oldest bundle must go, and foreign files must stay. */
export const THIRD_BUNDLE = bundle('a third bundle of images, which replaces the oldest bundle', {
  ours: ['v1.35.1+k0s.0', 'v1.36.0+k0s.0'].map(bundleOf),
  theirs: ['theirs.tar'],
});
