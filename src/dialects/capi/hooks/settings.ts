/** Reads the settings in the ExtensionConfig, and refuses values that Refit would otherwise ignore without a word. */
import type { Settings } from '../../../api/capi/hooks.ts';
import { ownMember } from '../../../util/own-member.ts';
import { VERSION_RULES } from '../../../versions/plan-rules.ts';

/** The values that each setting may have. `isList` says that the setting has several values, separated by commas. */
const VALUES: Readonly<Record<string, { readonly of: readonly string[]; readonly isList?: true }>> =
  {
    partial: { of: ['allow', 'deny'] },
    disableInPlaceUpdates: { of: ['true', 'false'] },
    allowedVersionRules: { of: VERSION_RULES, isList: true },
  };

/**
 * Returns a sentence about a setting that has a value which it cannot have; undefined if there is none. Without this check, Cluster API would replace Machines that the
 * author of the setting wanted to keep. Settings that Refit does not know may belong to another extension.
 */
export function settingsProblem(settings: Settings | null | undefined): string | undefined {
  for (const [name, { of, isList }] of Object.entries(VALUES)) {
    const value = ownMember(settings ?? {}, name) ?? '';
    const values = isList ? value.split(',').map((each) => each.trim()) : [value];
    const wrong = values.find((each) => each !== '' && !of.includes(each));
    if (wrong !== undefined)
      return `the setting ${name} is ${JSON.stringify(wrong)}, expected ${of.join(' or ')}`;
  }
  return undefined;
}

/** Throws if a setting has a value that it cannot have. */
export function judgeSettings(settings: Settings | null | undefined): void {
  const problem = settingsProblem(settings);
  if (problem !== undefined) throw new Error(problem);
}

/** Returns true if the setting of Cluster API's reference extension turns in-place updates off. */
export function isDisabled(settings: Settings | null | undefined): boolean {
  return settings?.['disableInPlaceUpdates'] === 'true';
}
