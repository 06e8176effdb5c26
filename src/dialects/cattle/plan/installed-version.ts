/**
 * Says what a Plan installs. Refit can compare the versions of nodes only with a Plan that installs Kubernetes, and only
 * if the version that its image installs is known.
 */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { ownMember } from '../../../util/own-member.ts';
import { parseVersion, withPlusSign, withV } from '../../../util/version.ts';
import { CONTROL_PREFIX, mungeVersion } from './names.ts';

/** The annotation on a Plan that says what its image installs: `kubernetes` or `other`. It counts before the name of the image. */
export const INSTALLS_ANNOTATION = `${CONTROL_PREFIX}installs`;

/** The last path elements of the images that install K3s or RKE2. */
const INSTALLERS: readonly string[] = ['k3s-upgrade', 'rke2-upgrade'];

/** What a Plan installs on its nodes. */
export type Installed =
  /** The image may do anything, so the version of the Plan says nothing about the kubelets. */
  | { readonly kind: 'other' }
  /** The image installs Kubernetes, but `tag` is no version, so nobody knows which version it installs. */
  | { readonly kind: 'unverifiable'; readonly tag: string }
  | {
      readonly kind: 'kubernetes';
      /** The version that kubelets report when they are upgraded, such as `v1.36.3+k3s1`. */
      readonly version: string;
      /** The version of the Plan, if the tag of the image names another one. The image installs the version of its tag. */
      readonly planned?: string;
      /** The tag that the Job adds to the image, if no release of this image has such a tag. */
      readonly unpublished?: string;
    };

/** An image without its tag and digest, and its tag. The tag is undefined if the image has none. */
interface ImageName {
  readonly repository: string;
  readonly tag: string | undefined;
}

function imageName(image: string): ImageName {
  const [bare = ''] = image.split('@');
  const [, repository = bare, tag] = /^(.*):([^/:]*)$/.exec(bare) ?? [];
  return { repository, tag: tag === '' ? undefined : tag };
}

/** Returns true if the image has a tag or a digest, so that the version of the Plan is not added to it. */
export function hasTag(image: string): boolean {
  return image.includes('@') || imageName(image).tag !== undefined;
}

/** Returns true if the Plan installs Kubernetes. `mirrors` are further images that install K3s or RKE2. */
export function installsKubernetes(plan: CattlePlan, mirrors: readonly string[] = []): boolean {
  const said = ownMember(plan.metadata.annotations, INSTALLS_ANNOTATION);
  if (said === 'kubernetes' || said === 'other') return said === 'kubernetes';
  return isInstaller(plan.spec?.upgrade?.image ?? '', mirrors);
}

/** Returns true if the image has the name of an image that installs K3s or RKE2. */
export function isInstaller(image: string, mirrors: readonly string[] = []): boolean {
  const { repository } = imageName(image);
  return [...INSTALLERS, ...mirrors].some((known) => {
    const name = imageName(known).repository;
    return repository === name || repository.endsWith(`/${name}`);
  });
}

/**
 * Returns what the Plan installs at `latest`, the latest version of the Plan. A tag of the image counts before the
 * version, because the image is started with its tag. A digest alone says nothing, so the version of the Plan counts.
 */
export function installedBy(
  plan: CattlePlan,
  latest: string,
  mirrors: readonly string[] = [],
): Installed {
  if (!installsKubernetes(plan, mirrors)) return { kind: 'other' };
  const { tag } = imageName(plan.spec?.upgrade?.image ?? '');
  const wanted = tag ?? latest;
  if (parseVersion(wanted) === undefined) return { kind: 'unverifiable', tag: wanted };
  const version = reportedVersion(wanted);
  const isOther = tag !== undefined && latest !== '' && reportedVersion(latest) !== version;
  const isUnpublished = tag === undefined && !isPublished(plan.spec?.upgrade?.image ?? '', wanted);
  return {
    kind: 'kubernetes',
    version,
    ...(isOther ? { planned: latest } : {}),
    ...(isUnpublished ? { unpublished: wanted } : {}),
  };
}

/** The tags of the images that install K3s and RKE2 begin with `v` and end with the build of the product. */
const TAGS: readonly (readonly [installer: string, tag: RegExp])[] = [
  ['k3s-upgrade', /^v.*-k3s\d/],
  ['rke2-upgrade', /^v.*-rke2r\d/],
];

/** Returns false if no release of the image can have the tag. Nothing is known about an image with another name. */
function isPublished(image: string, tag: string): boolean {
  const { repository } = imageName(image);
  // An image with a digest is pulled by its digest, whatever its tag is.
  if (image.includes('@')) return true;
  const known = TAGS.find(
    ([installer]) => repository === installer || repository.endsWith(`/${installer}`),
  );
  return known === undefined || known[1].test(mungeVersion(tag));
}

/**
 * Returns the version that a kubelet of this release reports. RKE2 reports no release candidate: the kubelet of
 * `v1.36.3-rc1+rke2r1` reports `v1.36.3+rke2r1`.
 */
export function reportedVersion(release: string): string {
  return withV(withPlusSign(mungeVersion(release).replace(/-rc\.?\d+(?=[-+]|$)/, '')));
}

/**
 * Returns true if the kubelet reports the version `wanted` of an installed Plan. If `wanted` names no build, such as
 * `+k3s1`, any build counts. `lacksBuilds` means that the kubelet may report its version without a build, as the kubelets
 * of RKE2 on Windows do: `v1.36.3` for the release `v1.36.3+rke2r1`.
 */
export function isReported(
  reported: string | undefined,
  wanted: string,
  lacksBuilds = false,
): boolean {
  if (reported === undefined || reported === '') return false;
  const known = reportedVersion(reported);
  const [plain] = known.split('+');
  if (known === wanted || (!wanted.includes('+') && plain === wanted)) return true;
  return lacksBuilds && known === plain && wanted.split('+')[0] === plain;
}

/**
 * Returns the version that the Plan asks for in its spec; undefined if a channel says it. Commands that look at a file
 * have no latest version.
 */
export function plannedVersion({ spec }: CattlePlan): string | undefined {
  const { version = '' } = spec ?? {};
  return version === '' ? undefined : mungeVersion(version);
}

/** Returns a clause about what the Plan installs that its author should know; undefined if there is nothing to say. */
export function doubtAbout(installed: Installed): string | undefined {
  switch (installed.kind) {
    case 'other':
      return undefined;
    case 'unverifiable':
      return installed.tag === ''
        ? undefined
        : `the image installs ${JSON.stringify(installed.tag)}, which is no version, so Refit cannot compare it with the versions of the nodes; use for example v1.36.3-k3s1`;
    case 'kubernetes':
      if (installed.unpublished !== undefined)
        return `the Job would pull the image with the tag ${installed.unpublished}, but its releases have tags such as v1.36.3-k3s1 or v1.36.3-rke2r1, so no pod can start; correct the version or the image`;
      return installed.planned === undefined
        ? undefined
        : `the tag of the image installs ${installed.version}, but the version of the Plan is ${installed.planned}; the tag counts, so remove the tag or name the same version`;
  }
}
