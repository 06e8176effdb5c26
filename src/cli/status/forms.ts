/** Owns the names of the output forms of `refit status`. */

export const FORMS = ['text', 'wide', 'json', 'yaml'] as const;
export type Form = (typeof FORMS)[number];
