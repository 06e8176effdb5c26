/** Reads and changes the record of the airgap bundles that the agent placed. */
import { aText, type Members, readMembers, recordOf } from '../../signal/members.ts';
import { defined, isRecord, parseJson } from '../../util/json.ts';
import { ownMember } from '../../util/own-member.ts';
import { isSameVersion, mayBeSameVersion } from '../../versions/release-parts.ts';
import { type Files, writeDurably } from '../state/durable-files.ts';
import { aRemovalReason, STAY, type Stay } from '../state/kept-stay.ts';
import { unless } from '../state/trusted-path.ts';
import { isBundleName } from './bundle-name.ts';

export interface PlacedBundle {
  readonly name: string;
  readonly url: string;
  readonly version: string;
  /** The hash of the bytes at the time when the agent placed the bundle. */
  readonly sha256: string;
  /** The ETag or the date that the server sent. */
  readonly validator?: string;
  /** The stamp that the file had when its hash last matched. It is absent until the agent has checked the file. */
  readonly stamp?: string;
}

const REMOVED = { version: aText, gone: aRemovalReason };

const MEMBERS = {
  /**
   * The version that the last successful upgrade installed on this host. Upgrades before the agent placed its first
   * bundle do not count.
   */
  runs: aText,
  /** How long the bundles of all versions but the newest one stay on the host. */
  stay: recordOf(STAY),
  /**
   * The version whose bundles the agent removed last, and the reason. The entry is absent once a later bundle has been
   * placed.
   */
  gone: recordOf(REMOVED),
};

export interface BundleRecord extends Members<typeof MEMBERS> {
  /** The bundles in the order in which they were placed. The bundles of the newest version are at the end. */
  readonly bundles: readonly PlacedBundle[];
}

/**
 * Returns the record. A record that cannot be parsed counts as empty, and its bundles are then never removed. Rejects
 * if the record cannot be read.
 */
export async function loadBundles(path: string, files: Files): Promise<BundleRecord> {
  const value = parseJson(await unless('ENOENT', files.readFile(path, 'utf8')));
  if (!isRecord(value)) return { bundles: [] };
  const bundles = value['bundles'];
  const known = Array.isArray(bundles) ? bundles.filter(isBundle) : [];
  return { bundles: known, ...readMembers(value, MEMBERS) };
}

/** Saves the record. */
export async function saveBundles(path: string, record: BundleRecord, files: Files): Promise<void> {
  await writeDurably(path, `${JSON.stringify(record)}\n`, files);
}

/**
 * Returns the record with the bundle at its end. The bundle replaces an entry with the same name. If it is the first
 * bundle of its version, all other bundles now count as bundles of the previous version. They stay for `keepMs` after
 * the upgrade has succeeded.
 */
export function withBundle(
  record: BundleRecord,
  bundle: PlacedBundle,
  keepMs?: number,
): BundleRecord {
  const bundles = [...record.bundles.filter(({ name }) => name !== bundle.name), bundle];
  if (isNewest(record, bundle.version)) return { ...record, bundles };
  const { gone: _gone, stay: _stay, ...rest } = record;
  const stay: Stay = defined({ leftMs: keepMs });
  return { ...rest, bundles, ...(keepMs !== undefined && { stay }) };
}

/** Returns true if the bundle that was placed last is for this version. */
export function isNewest({ bundles }: BundleRecord, version: string): boolean {
  const newest = bundles.at(-1)?.version;
  return newest !== undefined && isSameVersion(newest, version);
}

/** Returns the bundles of all versions but the newest one. */
export function previousIn(record: BundleRecord): readonly PlacedBundle[] {
  return record.bundles.filter(({ version }) => !isNewest(record, version));
}

/**
 * Returns true if there are bundles of more than two versions. The bundles of two versions may stay. So only in this
 * case the agent must remove bundles after it has placed a new bundle.
 */
export function hasThirdVersion(record: BundleRecord): boolean {
  const previous = previousIn(record);
  return previous.some(({ version }) => !isSameVersion(version, previous[0]?.version ?? version));
}

/**
 * Returns the bundles that stay after a new bundle has been placed: the bundles of the newest version, and the bundles
 * of the version that may be running. If it is not certain which older bundle belongs to the running version, the
 * bundles of the second newest version stay as well.
 */
export function keptWithNext(
  record: BundleRecord,
  runs: string | undefined,
): readonly PlacedBundle[] {
  const previous = previousIn(record);
  const running = previous.find(
    ({ version }) => runs !== undefined && isSameVersion(version, runs),
  );
  const second = (running ?? previous.at(-1))?.version;
  return record.bundles.filter(
    ({ version }) =>
      isNewest(record, version) ||
      (second !== undefined && isSameVersion(version, second)) ||
      (runs !== undefined && mayBeSameVersion(version, runs)),
  );
}

function isBundle(value: unknown): value is PlacedBundle {
  const isWhole =
    isRecord(value) &&
    ['url', 'version', 'sha256'].every((key) => typeof ownMember(value, key) === 'string');
  // Guard bundle-listed. The name of a bundle leads to no other directory.
  return isWhole && isBundleName(value['name']);
}
