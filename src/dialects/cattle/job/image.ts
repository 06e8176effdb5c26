/** Owns the rule by which an image without tag gets the version of the Plan. */

const TAG = /^[\w][\w.-]{0,127}$/;
const REPOSITORY = /^(?:[A-Za-z0-9.-]+(?::\d+)?\/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*$/;

/** Whatever already has a tag or a digest, or is no reference at all, stays as it is written. */
export function withLatestTag(image: string, version: string): string {
  const afterHost = image.slice(image.lastIndexOf('/') + 1);
  if (/[:@]/.test(afterHost) || !REPOSITORY.test(image) || !TAG.test(version)) return image;
  return `${image.replace(/^(?:index\.)?docker\.io\/(?:library\/(?=[^/]+$))?/, '').replace(/^library\/(?=[^/]+$)/, '')}:${version}`;
}
