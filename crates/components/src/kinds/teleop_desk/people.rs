//! The people at the desk: their tokens, roles and permissions.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use viaduct_node::{SettingError, files};
use viaduct_teleop::driving::OperatorId;

use super::settings::{NAME_CHARACTERS_MAX, PersonSettings, TeleopDeskSettings};
use crate::teleop::operator_id;

/// Largest number of people.
const PEOPLE_MAX: usize = 256;
/// Largest size of the file.
const FILE_OCTETS_MAX: u64 = 256 << 10;
/// Shortest and longest token, in characters.
const TOKEN_CHARACTERS: std::ops::RangeInclusive<usize> = 16..=256;

/// Role of a person at the desk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Drives.
    Driver,
    /// Sees pictures and states.
    Observer,
}

/// A permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Permission {
    Drive,
    TakeOver,
    EmergencyStop,
}

/// A person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Person {
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) operator: OperatorId,
    pub(super) may: Vec<Permission>,
}

impl Person {
    pub(super) fn may(&self, permission: Permission) -> bool {
        self.may.contains(&permission)
    }
}

/// All people with their tokens.
pub(super) struct People {
    people: Vec<([u8; 32], Arc<Person>)>,
    /// The person that every token belongs to, if there is no login.
    default_person: Option<Arc<Person>>,
    /// `true` if the tokens are in a file that only the user of the process may read.
    has_secret_tokens: bool,
}

/// A problem of the file of tokens.
#[derive(Debug, thiserror::Error)]
pub(super) enum TokensError {
    #[error("cannot read the tokens: {0}")]
    Io(#[from] io::Error),
    #[error("other users have access to the tokens; remove it with `chmod 600`")]
    Permissions,
    #[error("the file belongs to another user; change its owner with `chown` to the user of this process")]
    Owner,
    #[error("line {line}: {problem}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        problem: LineProblem,
    },
    #[error("the file has no tokens; add a line `driver TOKEN NAME` or `observer TOKEN NAME`")]
    Empty,
    #[error("the file has more than {PEOPLE_MAX} tokens")]
    TooMany,
}

/// A problem of one line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum LineProblem {
    #[error("expected `ROLE TOKEN NAME`")]
    Form,
    #[error("the role is neither `driver` nor `observer`")]
    Role,
    #[error("a token has 16 to 256 characters without spaces")]
    Token,
    #[error("a name has 1 to 64 characters")]
    Name,
    #[error("another person has this token or name; both must be unique")]
    Twice,
}

/// Permissions of each role.
#[derive(Clone, Copy)]
struct Rights {
    drivers_take_over: bool,
    observers_stop: bool,
}

impl Rights {
    fn of(self, role: Role) -> Vec<Permission> {
        let driver = [Some(Permission::Drive), self.drivers_take_over.then_some(Permission::TakeOver)];
        match role {
            Role::Driver => driver.into_iter().flatten().chain([Permission::EmergencyStop]).collect(),
            Role::Observer => self.observers_stop.then_some(Permission::EmergencyStop).into_iter().collect(),
        }
    }
}

impl People {
    /// Returns the people for whom every token, also an empty one, is that of a driver.
    pub(super) fn without_login(settings: &TeleopDeskSettings) -> Self {
        let person = person("Driver", Role::Driver, rights(settings));
        Self { people: Vec::new(), default_person: Some(Arc::new(person)), has_secret_tokens: false }
    }

    /// Returns the people of the settings.
    ///
    /// # Errors
    /// The first person that is not possible.
    pub(super) fn of(people: &[PersonSettings], settings: &TeleopDeskSettings) -> Result<Self, SettingError> {
        let rights = rights(settings);
        let mut all = Self { people: Vec::new(), default_person: None, has_secret_tokens: false };
        if !(1..=PEOPLE_MAX).contains(&people.len()) {
            let problem = format!("{} is not within 1 to {PEOPLE_MAX} people", people.len());
            return Err(SettingError::new("login.people", problem));
        }
        for (index, PersonSettings { name, role, token }) in people.iter().enumerate() {
            let entry = all.entry(*role, token, name, rights);
            let refused =
                |problem: LineProblem| SettingError::new(format!("login.people.{index}"), problem.to_string());
            all.people.push(entry.map_err(refused)?);
        }
        Ok(all)
    }

    /// Reads the people from a file that only the user of the process may read.
    pub(super) fn read(path: &Path, settings: &TeleopDeskSettings) -> Result<Self, TokensError> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.mode() & 0o077 != 0 {
            return Err(TokensError::Permissions);
        }
        // The folder belongs to the effective user of the process.
        let user = std::fs::metadata("/proc/self")?.uid();
        if metadata.uid() != user && metadata.uid() != 0 {
            return Err(TokensError::Owner);
        }
        Self::parse(&files::text_of(file, FILE_OCTETS_MAX)?, rights(settings))
    }

    fn parse(text: &str, rights: Rights) -> Result<Self, TokensError> {
        let mut all = Self { people: Vec::new(), default_person: None, has_secret_tokens: true };
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let parsed = all.parse_line(line, rights);
            let entry = parsed.map_err(|problem| TokensError::Line { line: index + 1, problem })?;
            all.people.push(entry);
        }
        match all.people.len() {
            0 => Err(TokensError::Empty),
            1..=PEOPLE_MAX => Ok(all),
            _ => Err(TokensError::TooMany),
        }
    }

    fn parse_line(&self, line: &str, rights: Rights) -> Result<([u8; 32], Arc<Person>), LineProblem> {
        let (role, rest) = line.split_once(char::is_whitespace).ok_or(LineProblem::Form)?;
        let (token, name) = rest.trim_start().split_once(char::is_whitespace).ok_or(LineProblem::Form)?;
        let role = match role {
            "driver" => Role::Driver,
            "observer" => Role::Observer,
            _ => return Err(LineProblem::Role),
        };
        self.entry(role, token, name.trim(), rights)
    }

    /// Returns the entry of a person who is not in the list yet.
    fn entry(
        &self,
        role: Role,
        token: &str,
        name: &str,
        rights: Rights,
    ) -> Result<([u8; 32], Arc<Person>), LineProblem> {
        if !TOKEN_CHARACTERS.contains(&token.chars().count()) || token.contains(char::is_whitespace) {
            return Err(LineProblem::Token);
        }
        if !(1..=NAME_CHARACTERS_MAX).contains(&name.chars().count()) || name.chars().any(char::is_control) {
            return Err(LineProblem::Name);
        }
        let (hash, person) = (hash(token), person(name, role, rights));
        let twice = |(other, known): &([u8; 32], Arc<Person>)| *other == hash || known.operator == person.operator;
        if self.people.iter().any(twice) {
            return Err(LineProblem::Twice);
        }
        Ok((hash, Arc::new(person)))
    }

    /// Returns `true` if a token is necessary.
    pub(super) const fn need_token(&self) -> bool {
        self.default_person.is_none()
    }

    /// Returns `true` if the tokens are in a file that only the user of the process may read. Otherwise, each user of this machine
    /// may log in.
    pub(super) const fn have_secret_tokens(&self) -> bool {
        self.has_secret_tokens
    }

    /// Returns the person with the given token. The time does not depend on how much of a token is right.
    pub(super) fn find(&self, token: &str) -> Option<Arc<Person>> {
        if let Some(person) = &self.default_person {
            return Some(person.clone());
        }
        let given = hash(token);
        let mut found = None;
        for (known, person) in &self.people {
            let difference = known.iter().zip(&given).fold(0, |all, (a, b)| all | (a ^ b));
            if difference == 0 {
                found = Some(person);
            }
        }
        found.cloned()
    }

    /// Returns the name of an operator: that of the list, or the identifier.
    pub(super) fn name_of(&self, operator: OperatorId) -> String {
        let all = self.people.iter().map(|(_, person)| person).chain(&self.default_person);
        let mut named = all.filter(|person| person.operator == operator);
        named.next().map_or_else(|| operator.to_string(), |person| person.name.clone())
    }
}

/// Shows no token.
impl fmt::Debug for People {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("People").field("people", &self.people.len()).finish_non_exhaustive()
    }
}

fn rights(settings: &TeleopDeskSettings) -> Rights {
    Rights { drivers_take_over: settings.drivers_take_over, observers_stop: settings.observers_stop }
}

fn person(name: &str, role: Role, rights: Rights) -> Person {
    Person { name: name.to_owned(), role, operator: operator_id(name), may: rights.of(role) }
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::settings::tests::settings;
    use super::*;

    const FILE: &str = "# people\n\ndriver  0123456789abcdef Ada Lovelace\nobserver fedcba9876543210\tControl room\n";
    const ALL: Rights = Rights { drivers_take_over: true, observers_stop: true };

    #[test]
    fn a_token_belongs_to_one_person() {
        let people = People::parse(FILE, ALL).unwrap();
        let ada = people.find("0123456789abcdef").unwrap();
        assert_eq!((ada.name.as_str(), ada.role), ("Ada Lovelace", Role::Driver));
        assert!(ada.may(Permission::Drive) && ada.may(Permission::TakeOver) && ada.may(Permission::EmergencyStop));
        let room = people.find("fedcba9876543210").unwrap();
        assert!(!room.may(Permission::Drive) && !room.may(Permission::TakeOver) && room.may(Permission::EmergencyStop));
        assert_eq!(people.name_of(room.operator), "Control room");
        for wrong in ["", "0123456789abcde", "0123456789abcdeF", "0123456789abcdef "] {
            assert_eq!(people.find(wrong), None, "{wrong}");
        }
        assert!(!format!("{people:?}").contains("0123"));
    }

    #[test]
    fn the_settings_limit_the_permissions() {
        let rights = Rights { drivers_take_over: false, observers_stop: false };
        assert_eq!(rights.of(Role::Driver), [Permission::Drive, Permission::EmergencyStop]);
        assert_eq!(rights.of(Role::Observer), []);
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (line, problem) in [
            ("driver 0123456789abcdef", LineProblem::Form),
            ("pilot 0123456789abcdef Ada", LineProblem::Role),
            ("driver 0123456789abcde Ada", LineProblem::Token),
            ("driver 0123456789abcdee Control room", LineProblem::Twice),
            ("driver fedcba9876543210 Eve", LineProblem::Twice),
        ] {
            match People::parse(&format!("{FILE}{line}\n"), ALL).unwrap_err() {
                TokensError::Line { line: 5, problem: found } => assert_eq!(found, problem, "{line}"),
                other => panic!("{line}: {other}"),
            }
        }
        assert!(matches!(People::parse("# nobody\n", ALL), Err(TokensError::Empty)));
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        std::fs::write(&path, FILE).unwrap();
        let settings = settings(&serde_json::json!({}));
        for (mode, permitted) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let read = People::read(&path, &settings);
            assert_eq!(read.is_ok(), permitted, "{mode:o}");
            assert!(permitted || matches!(read, Err(TokensError::Permissions)));
        }
    }
}
